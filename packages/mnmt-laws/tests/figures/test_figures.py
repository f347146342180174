"""Figures: what is drawn is what was given, and the same input gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mnmt_laws import (
    LawFit,
    Observations,
    Perturbation,
    TableError,
    effective_fractions,
    fit,
    observe,
    predict_held_out,
)
from mnmt_laws.figures.comparison import draw_comparison, draw_intervals
from mnmt_laws.figures.decisions import draw_design, draw_frontier
from mnmt_laws.figures.losses import draw_learning_curves, draw_losses, draw_parallels, draw_quality
from mnmt_laws.figures.points import CORRECTED
from mnmt_laws.figures.predictions import draw_held_out, draw_more_tasks
from mnmt_laws.figures.style import format_size, to_svg
from mnmt_laws.figures.weights import draw_relative_gain
from mnmt_laws.fitting.convergence import Curve

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

FEW = Perturbation(refits=5)
NOTE = "corrected for convergence"


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def marks(axes: Axes, marker: object) -> list[Line2D]:
    """Single points drawn with a marker."""
    return [line for line in axes.get_lines() if line.get_marker() == marker and len(points_of(line)) == 1]


def points_of(line: Line2D) -> Array:
    """(points, 2) where a line goes."""
    return np.asarray(line.get_xydata(), float)


def at(line: Line2D) -> tuple[float, float]:
    x, y = points_of(line)[0]
    return float(x), float(y)


@pytest.fixture
def observations(study_table: pd.DataFrame) -> Observations:
    return observe(study_table)


@pytest.fixture
def corrected(observations: Observations) -> Observations:
    """The largest models at weight 0.1 are corrected."""
    frame = observations.frame
    chosen = frame["size"].eq(frame["size"].max()) & frame["weight"].eq(0.1)
    return replace(observations, frame=frame.assign(corrected=chosen))


def fits(observations: Observations) -> dict[str, LawFit]:
    laws = {"per_weighting": "per-weighting", "joint": "joint", "capacity": "capacity"}
    return {name: fit(observations, law=law, uncertainty=FEW) for name, law in laws.items()}  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "text"), [(999, "999"), (37216, "37.2K"), (1.3e6, "1.3M"), (2e9, "2B")])
def test_sizes_are_short(size: float, text: str) -> None:
    assert format_size(size) == text


def test_corrected_losses_are_marked_and_named(corrected: Observations, observations: Observations) -> None:
    marked, plain = fits(corrected), fits(observations)
    kinds: list[Callable[[dict[str, LawFit]], Figure]] = [
        lambda own: draw_losses(task="en-de", **own),
        lambda own: draw_parallels(task="en-de", joint=own["joint"]),
    ]
    for draw in kinds:
        drawn = draw(marked)
        assert NOTE in labels(drawn)
        assert [at(mark)[0] for mark in marks(drawn.axes[0], CORRECTED)] == [262000.0]
        assert NOTE not in labels(draw(plain))
        assert not marks(draw(plain).axes[0], CORRECTED)


def test_a_frontier_marks_models_with_a_corrected_value(corrected: Observations) -> None:
    capacity = fit(corrected, law="capacity", uncertainty=FEW)
    figure = draw_frontier(capacity, sizes=[148160, 262000])
    assert NOTE in labels(figure)
    frame = corrected.frame.set_index(["size", "task", "weight"])["value"]
    expected = {
        (frame[262000, "en-de", 0.1], frame[262000, "en-zh", 0.9]),
        (frame[262000, "en-de", 0.9], frame[262000, "en-zh", 0.1]),
    }
    assert {at(mark) for mark in marks(figure.axes[0], CORRECTED)} == expected
    assert NOTE not in labels(draw_frontier(capacity, sizes=[148160]))


def test_a_frontier_needs_two_tasks(observations: Observations) -> None:
    alone = replace(observations, frame=observations.frame[observations.frame["task"] == "en-de"])
    with pytest.raises(TableError, match="a frontier is drawn of two tasks, but the table has 1"):
        draw_frontier(fit(alone, law="capacity", uncertainty=FEW), sizes=[1e5])


def test_held_out_values_stand_where_they_were_measured_and_predicted(corrected: Observations) -> None:
    own = fits(corrected)
    held_out = predict_held_out(capacity=own["capacity"], joint=own["joint"])
    figure = draw_held_out(held_out, corrected)
    points = {at(line) for line in figure.axes[0].get_lines() if len(points_of(line)) == 1}
    rows = held_out.rows
    assert points == set(zip(rows["observed"], rows["capacity"], strict=True))
    assert len(marks(figure.axes[0], CORRECTED)) == 2
    assert {NOTE, "new size", "new weight", "new weight and size"} <= set(labels(figure))


def test_relative_gain_shows_the_fraction_over_the_weight(observations: Observations) -> None:
    effective = effective_fractions(fit(observations, uncertainty=FEW))
    figure = draw_relative_gain({"news": effective, "test": effective}, task="en-de")
    assert labels(figure) == ["news", "test", "f = p"]
    drawn = figure.axes[0].containers
    known = effective.fractions.value.sel(task="en-de").dropna("weight")
    first, second = (points_of(container.lines[0]) for container in drawn)  # type: ignore[attr-defined]
    np.testing.assert_allclose(first[:, 1], known / known.weight)
    np.testing.assert_allclose(second[:, 1], first[:, 1])
    shift = second[:, 0] - first[:, 0]
    assert np.all((shift > 0) & (shift < 0.02))  # side by side, in the order given


def test_relative_gain_without_a_task_shows_every_task(observations: Observations) -> None:
    effective = effective_fractions(fit(observations, uncertainty=FEW))
    assert labels(draw_relative_gain({"": effective})) == ["en-de", "en-zh", "f = p"]
    assert labels(draw_relative_gain({"a": effective}))[:2] == ["a, en-de", "a, en-zh"]


def test_relative_gain_needs_known_fractions(observations: Observations) -> None:
    mixed = replace(observations, frame=observations.frame[observations.frame["weight"] < 1])
    unknown = effective_fractions(fit(mixed, uncertainty=FEW))
    with pytest.raises(ValueError, match="known effective fractions"):
        draw_relative_gain({"test": unknown})


def curve(*, corrected: bool, weight: float = 0.1, task: str = "en-de") -> Curve:
    steps, fine = np.array([0.0, 100.0, 400.0, 1600.0]), np.geomspace(100, 10000, 30)
    return Curve(
        run="r", task=task, weight=weight, size=1e6, steps=steps, values=np.array([9.0, 0.3, 0.2, 0.15]),
        fitted_steps=fine, fitted_values=0.1 + 2 / np.sqrt(fine), horizon=10000.0, value=0.12, std=0.01,
        corrected=corrected,
    )  # fmt: skip


def test_learning_curves_are_read_at_the_horizon() -> None:
    figure = draw_learning_curves([curve(corrected=True), curve(corrected=False, weight=0.5)], task="en-de")
    axes = figure.axes[0]
    (mark,) = marks(axes, CORRECTED)
    assert at(mark) == pytest.approx((10000.0, 0.12))
    dashed = [line for line in axes.get_lines() if line.get_linestyle() == "--"]
    ends = [points_of(line)[[0, -1], 0] for line in dashed]
    assert [start > 1600 and end == 10000.0 for start, end in ends] == [True, True]
    assert {"N = 1M, p = 0.1", "N = 1M, p = 0.5", NOTE, "converged"} <= set(labels(figure))


def test_learning_curves_need_one_of_the_task() -> None:
    with pytest.raises(ValueError, match="must hold a curve of en-zh, but 1 are of other tasks"):
        draw_learning_curves([curve(corrected=True)], task="en-zh")


def comparison_table() -> pd.DataFrame:
    rows = [
        ("en-de", "joint", "β varies", 8, 10.0, 20.0, 0.01, 0.02),
        ("en-de", "limit-varies", "L∞ varies", 8, 90.0, 70.0, 0.05, math.nan),
        ("en-zh", "joint", "β varies", 8, 10.0, 33.0, 0.03, 0.02),
        ("en-zh", "limit-varies", "L∞ varies", 8, 4.0, 31.0, math.nan, 0.06),
    ]
    columns = ["task", "law", "label", "num_params", "aic", "bic", "size_error", "weight_error"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(("criterion", "excess"), [("bic", {0.0, 50.0, 2.0}), ("aic", {0.0, 80.0, 6.0})])
def test_comparison_shows_the_excess_over_the_best_law(criterion: str, excess: set[float]) -> None:
    figure = draw_comparison(comparison_table(), criterion=criterion)
    dots = [{at(mark)[0] for mark in marks(axes, "o")} for axes in figure.axes]
    assert dots[0] == excess
    assert sorted(dots[1]) == pytest.approx([1.0, 3.0, 5.0])
    assert len(marks(figure.axes[2], "o")) == 3  # the unknown error is left blank
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["β varies", "L∞ varies"]


def test_comparison_knows_two_criteria() -> None:
    with pytest.raises(ValueError, match="`criterion` must be aic or bic, but is 'dic'"):
        draw_comparison(comparison_table(), criterion="dic")


def more_rows(sizes: tuple[float, ...]) -> pd.DataFrame:
    rows = [
        ("r", task, size, share, f"aa:{share},bb:{1 - share}", 1 / i, 1.1 / i, 1.0 / i, 1.2 / i)
        for task in ("aa", "bb")
        for share in (0.25, 0.5)
        for i, size in enumerate(sizes, start=1)
    ]
    columns = ["run", "task", "size", "weight", "mixture", "observed", "predicted", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def test_more_tasks_have_a_panel_a_task_and_a_line_a_mixture() -> None:
    figure = draw_more_tasks(more_rows((1e4, 1e5, 1e6)))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["aa", "bb"]
    solid = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == "-"]
    assert len(solid) == 2
    np.testing.assert_allclose(points_of(solid[0])[:, 1], [1.1, 1.1 / 2, 1.1 / 3])
    assert labels(figure) == ["aa:0.25  bb:0.75", "aa:0.5  bb:0.5"]


def test_more_tasks_of_one_size_stand_against_their_predictions() -> None:
    figure = draw_more_tasks(more_rows((1e6,)), metric="chrf", unit="points")
    assert len(figure.axes) == 1
    assert figure.axes[0].get_xlabel() == "measured chrf (points)"
    assert len(figure.axes[0].containers) == 2


def test_intervals_stand_side_by_side() -> None:
    rows = [
        (task, name, method, 0.5, 0.4, upper)
        for task in ("aa", "bb")
        for name in ("alpha", "l_inf")
        for method, upper in (("profile", 0.7), ("residual", math.nan))
    ]
    columns = ["task", "parameter", "method", "estimate", "lower", "upper"]
    figure = draw_intervals(pd.DataFrame(rows, columns=columns))
    assert [axes.get_xlabel() for axes in figure.axes] == ["α", "L∞"]
    assert labels(figure) == ["profile", "residual"]
    heights = [at(mark)[1] for mark in marks(figure.axes[0], "o")]
    assert len(set(heights)) == 4


def quality_table() -> pd.DataFrame:
    losses = np.array([0.5, 1.0, 2.0])
    marked = [True, False, False]
    return pd.DataFrame({"task": "aa", "loss": losses, "chrf": 60 - 10 * losses, "corrected": marked})


def test_quality_lines_span_the_losses() -> None:
    lines = pd.DataFrame([("aa", -10.0, 60.0, -0.99)], columns=["task", "slope", "intercept", "r"])
    figure = draw_quality(quality_table(), "chrf", lines)
    assert labels(figure) == ["aa, r = −0.990", NOTE]
    (line,) = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == "-"]
    np.testing.assert_allclose(points_of(line), [[0.5, 55.0], [2.0, 40.0]])
    assert len(marks(figure.axes[0], CORRECTED)) == 1


def test_quality_needs_no_lines() -> None:
    figure = draw_quality(quality_table().drop(columns="corrected"), "chrf")
    assert labels(figure) == ["aa"]
    assert len(figure.axes[0].get_lines()) == 3


def test_proposed_runs_are_numbered_and_share_a_ring() -> None:
    existing = pd.DataFrame({"size": [1e4, 1e5], "weight": [0.0, 0.5]})
    proposed = pd.DataFrame({"size": [1e6, 1e6, 1e4], "weight": [0.3, 0.3, 0.9], "order": [1, 3, 2]})
    figure = draw_design(existing=existing, proposed=proposed, task="en-de")
    axes = figure.axes[0]
    assert {text.get_text(): text.xy for text in axes.texts} == {"1, 3": (1e6, 0.3), "2": (1e4, 0.9)}  # type: ignore[attr-defined]
    assert len(marks(axes, "o")) == 2
    assert axes.get_xlim()[0] < 1e4 < 1e6 < axes.get_xlim()[1]
    assert axes.get_ylabel() == "weight p of en-de"


@pytest.mark.parametrize(
    "draw",
    [
        lambda: draw_comparison(comparison_table()),
        lambda: draw_more_tasks(more_rows((1e4, 1e5, 1e6))),
        lambda: draw_learning_curves([curve(corrected=True)], task="en-de"),
        lambda: draw_quality(quality_table(), "chrf"),
    ],
)
def test_the_same_figure_is_the_same_bytes(draw: Callable[[], Figure]) -> None:
    assert to_svg(draw()) == to_svg(draw())
