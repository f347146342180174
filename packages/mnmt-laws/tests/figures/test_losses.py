"""Losses, learning curves and quality: what is drawn is what was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from mnmt_laws import LawFit
from mnmt_laws.figures.losses import draw_learning_curves, draw_losses, draw_parallels, draw_quality
from mnmt_laws.figures.points import CORRECTED, NOTE
from mnmt_laws.figures.style import to_svg
from mnmt_laws.fitting.convergence import Curve

Read = Callable[[Figure], Any]


@pytest.mark.parametrize(
    "draw",
    [
        lambda fits: draw_losses(task="en-de", **fits),
        lambda fits: draw_parallels(task="en-de", joint=fits["joint"]),
    ],
)
def test_corrected_losses_are_marked_and_named(
    draw: Callable[[dict[str, LawFit]], Figure],
    fits: dict[str, LawFit],
    corrected_fits: dict[str, LawFit],
    read: Read,
) -> None:
    drawing, plain = read(draw(corrected_fits)), read(draw(fits))
    assert NOTE in drawing.labels
    assert [size for size, _ in drawing.marks(CORRECTED)] == [262000.0]
    assert NOTE not in plain.labels
    assert not plain.marks(CORRECTED)


def curve(*, corrected: bool, weight: float = 0.1) -> Curve:
    steps, fine = np.array([0.0, 100.0, 400.0, 1600.0]), np.geomspace(100, 10000, 30)
    return Curve(
        run="r", task="en-de", weight=weight, size=1e6, steps=steps, values=np.array([9.0, 0.3, 0.2, 0.15]),
        fitted_steps=fine, fitted_values=0.1 + 2 / np.sqrt(fine), horizon=10000.0, value=0.12, std=0.01,
        corrected=corrected,
    )  # fmt: skip


def test_learning_curves_are_read_at_the_horizon(read: Read) -> None:
    curves = [curve(corrected=True), curve(corrected=False, weight=0.5)]
    drawing = read(draw_learning_curves(curves, task="en-de"))
    (mark,) = drawing.marks(CORRECTED)
    assert mark == pytest.approx((10000.0, 0.12))
    ends = [line[[0, -1], 0] for line in drawing.lines("--")]
    assert [start > 1600 and end == 10000.0 for start, end in ends] == [True, True]
    assert {"N = 1M, p = 0.1", "N = 1M, p = 0.5", NOTE, "converged"} <= set(drawing.labels)


def test_learning_curves_need_one_of_the_task() -> None:
    with pytest.raises(ValueError, match="must hold a curve of en-zh, but 1 are of other tasks"):
        draw_learning_curves([curve(corrected=True)], task="en-zh")


def quality_table() -> pd.DataFrame:
    losses = np.array([0.5, 1.0, 2.0])
    corrected = [True, False, False]
    return pd.DataFrame({"task": "aa", "loss": losses, "chrf": 60 - 10 * losses, "corrected": corrected})


def test_quality_lines_span_the_losses(read: Read) -> None:
    lines = pd.DataFrame([("aa", -10.0, 60.0, -0.99)], columns=["task", "slope", "intercept", "r"])
    drawing = read(draw_quality(quality_table(), "chrf", lines))
    assert drawing.labels == ["aa, r = −0.990", NOTE]
    (line,) = drawing.lines("-")
    np.testing.assert_allclose(line, [[0.5, 55.0], [2.0, 40.0]])
    assert len(drawing.marks(CORRECTED)) == 1


def test_quality_needs_no_lines(read: Read) -> None:
    drawing = read(draw_quality(quality_table().drop(columns="corrected"), "chrf"))
    assert drawing.labels == ["aa"]
    assert len(drawing.figure.axes[0].get_lines()) == 3


@pytest.mark.parametrize(
    "draw",
    [
        lambda: draw_learning_curves([curve(corrected=True)], task="en-de"),
        lambda: draw_quality(quality_table(), "chrf"),
    ],
)
def test_the_same_figure_is_the_same_bytes(draw: Callable[[], Figure]) -> None:
    assert to_svg(draw()) == to_svg(draw())
