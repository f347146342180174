"""Losses over size and training length: what is drawn is what was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import LawFit, Perturbation, fit
from mnmt_laws.figures.losses import draw_lengths, draw_losses
from mnmt_laws.figures.marks import MOST_POINTS
from mnmt_laws.figures.style import Chart

Read = Callable[[Chart], Any]


def test_laws_are_drawn_at_the_weights_that_they_know(fits: dict[str, LawFit], read: Read) -> None:
    lines = read(draw_losses(task="en-de", **fits)).rows("line")
    weights = {law: set(part["weight"]) for law, part in lines.groupby("law")}
    assert weights["joint law"] == weights["each alone"] == set(fits["joint"].fitted_weights("en-de"))
    assert weights["capacity law"].isdisjoint(weights["joint law"])
    joint = lines[lines["law"].eq("joint law") & lines["weight"].eq(0.3)]
    expected = fits["joint"].predict(task="en-de", weight=0.3, size=joint["size"].to_numpy())
    np.testing.assert_allclose(joint["value"], expected, rtol=1e-4)


def length_table() -> pd.DataFrame:
    size, tokens = (grid.ravel() for grid in np.meshgrid([1e5, 1e6, 1e7], [1e7, 1e8, 1e9, 1e10]))
    value = 1.5 + 300 * size**-0.4 + 2000 * tokens**-0.45
    run = [f"r{number}" for number in range(len(size))]
    return pd.DataFrame(
        {"run": run, "size": size, "tokens": tokens, "value": value, "seed": range(12)}
    ).assign(task="aa", weight=1.0, metric="loss")


def test_lengths_have_a_line_for_each_size(read: Read) -> None:
    law = fit(length_table(), law="chinchilla", uncertainty=Perturbation(refits=0))
    drawing = read(draw_lengths(law, task="aa"))
    assert drawing.labels() == {"N = 100K", "N = 1M", "N = 10M"}
    line = drawing.rows("line").query("size == 1e6")
    np.testing.assert_allclose(
        line["value"], law.predict(size=1e6, tokens=line["tokens"].to_numpy()), rtol=1e-4
    )
    assert {"tokens D", "size N"} <= drawing.tips()
    short = fit(length_table().query("tokens == 1e7"), law="power", uncertainty=Perturbation(refits=0))
    with pytest.raises(ValueError, match="law of the training length, but is of the power law"):
        draw_lengths(short, task="aa")


@pytest.mark.slow
def test_a_large_table_is_thinned(read: Read) -> None:
    size = np.geomspace(1e5, 1e7, 6000)
    table = pd.DataFrame(
        {"size": size, "value": 1 + 9 * size**-0.3, "task": "aa", "weight": 1.0, "metric": "loss"}
    )
    table["role"] = np.where(np.arange(6000) % 1500 == 7, "held-out", "fit")
    law = fit(table, law="power", uncertainty=Perturbation(refits=0))
    points = read(draw_losses(task="aa", joint=law)).rows("point")
    assert 1000 < len(points) <= MOST_POINTS + 4
    assert points["kind"].eq("held out").sum() == 4
