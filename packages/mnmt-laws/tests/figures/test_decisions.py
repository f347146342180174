"""Frontiers and the runs to train next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from mnmt_laws import Observations, Perturbation, TableError, fit
from mnmt_laws.figures.decisions import draw_frontier
from mnmt_laws.figures.style import Chart

Read = Callable[[Chart], Any]


def test_a_frontier_at_a_length_has_the_models_of_that_length(observations: Observations, read: Read) -> None:
    lengths = [(1e6, 0.3), (1e6 + 9, 0.3), (2e6, 0.0)]
    frames = [
        observations.frame.assign(tokens=tokens, seed=seed, value=observations.frame["value"] + more)
        for seed, (tokens, more) in enumerate(lengths)
    ]
    table = replace(observations, frame=pd.concat(frames, ignore_index=True))
    fitted = fit(table, law="share-tied", uncertainty=Perturbation(refits=0))
    sizes = sorted(set(table.frame["size"]))
    drawings = [read(draw_frontier(fitted, sizes=sizes, tokens=tokens)) for tokens in (1e6, 2e6)]
    brief, whole = (drawing.rows("point") for drawing in drawings)
    assert len(brief) == len(whole) > 0
    assert brief["first"].to_numpy() == pytest.approx(whole["first"].to_numpy() + 0.3, rel=1e-5)
    largest = whole[whole["line"] == whole["line"].iloc[whole["first"].argmin()]]
    named = drawings[1].rows("text")
    assert list(named["weight"]) == list(largest["weight"])
    assert list(named["first"]) == list(largest["first"])


def test_the_largest_models_have_the_first_tasks_weight_beside_them(
    observations: Observations, read: Read
) -> None:
    fitted = fit(observations, law="capacity", uncertainty=Perturbation(refits=0))
    sizes = sorted(set(observations.frame["size"]))
    labels = read(draw_frontier(fitted, sizes=sizes)).rows("text")
    largest = observations.frame[observations.frame["size"].eq(sizes[-1])]
    first, second = (
        largest[largest["task"].eq(task)].set_index("mixture")[["weight", "value"]] for task in fitted.tasks
    )
    both = first.join(second["value"].rename("second"))
    expected = both[both["weight"].between(0, 1, inclusive="neither")].sort_values("weight").to_numpy()
    drawn = labels.sort_values("weight")[["weight", "first", "second"]].to_numpy()
    assert drawn == pytest.approx(expected, rel=1e-5)  # as written in the figure


def test_a_frontier_needs_two_tasks(observations: Observations) -> None:
    alone = replace(observations, frame=observations.frame[observations.frame["task"] == "en-de"])
    with pytest.raises(TableError, match="a frontier is drawn of two tasks and sources"):
        draw_frontier(fit(alone, law="capacity", uncertainty=Perturbation(refits=0)), sizes=[1e5])
