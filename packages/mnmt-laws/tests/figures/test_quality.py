"""Quality against loss is drawn as it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws.figures.quality import draw_quality
from mnmt_laws.figures.style import Chart

Read = Callable[[Chart], Any]


def quality_table() -> pd.DataFrame:
    losses = np.array([0.5, 1.0, 2.0])
    return pd.DataFrame({"task": "aa", "loss": losses, "chrf": 60 - 10 * losses})


def test_quality_lines_span_the_losses(read: Read) -> None:
    lines = pd.DataFrame([("aa", -10.0, 60.0, -0.99)], columns=["task", "slope", "intercept", "r"])
    drawing = read(draw_quality(quality_table(), "chrf", lines))
    line = drawing.rows("line")
    np.testing.assert_allclose(line[["loss", "value"]], [[0.5, 55.0], [2.0, 40.0]])
    assert set(drawing.rows("point")["label"]) == {"aa, r = −0.990"}


def test_the_axis_of_losses_has_their_unit() -> None:
    table = quality_table()
    table.attrs["unit"] = "nats per byte"
    assert "loss (nats per byte)" in draw_quality(table, "chrf").to_json()
