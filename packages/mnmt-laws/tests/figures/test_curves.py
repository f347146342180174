"""Learning curves and quality: what is drawn is what was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mnmt_laws.figures.curves import draw_learning_curves, draw_quality
from mnmt_laws.figures.points import NOTE
from mnmt_laws.figures.style import Chart, to_svg
from mnmt_laws.fitting.curves.learning_curve import Curve

Read = Callable[[Chart], Any]


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
    points = drawing.rows("point")
    (end,) = points[points["kind"] == NOTE].to_dict("records")
    assert (end["step"], end["value"]) == pytest.approx((10000.0, 0.12))
    beyond = drawing.rows("line").query("law == 'beyond training'").groupby("line")["step"]
    assert (beyond.min() > 1600).all()
    assert (beyond.max() == 10000).all()
    assert {"N = 1M, p = 0.1", "N = 1M, p = 0.5", NOTE, "converged"} <= drawing.labels()


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
    assert drawing.labels() == {"trained", NOTE}
    line = drawing.rows("line")
    np.testing.assert_allclose(line[["loss", "value"]], [[0.5, 55.0], [2.0, 40.0]])
    assert set(drawing.rows("point")["label"]) == {"aa, r = −0.990"}
    assert drawing.rows("point")["kind"].eq(NOTE).sum() == 1


def test_quality_needs_no_lines(read: Read) -> None:
    drawing = read(draw_quality(quality_table().drop(columns="corrected"), "chrf"))
    assert not drawing.layers("line")
    assert len(drawing.rows("point")) == 3


@pytest.mark.parametrize(
    "draw",
    [
        lambda: draw_learning_curves([curve(corrected=True)], task="en-de"),
        lambda: draw_quality(quality_table(), "chrf"),
    ],
)
def test_the_same_figure_is_the_same_bytes(draw: Callable[[], Chart]) -> None:
    assert to_svg(draw()) == to_svg(draw())
