"""Frontiers and the runs to train next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from mnmt_laws import Design, LawFit, Observations, Perturbation, TableError, fit
from mnmt_laws.figures.decisions import draw_design, draw_frontier
from mnmt_laws.figures.points import CORRECTED, NOTE

Read = Callable[[Figure], Any]


def test_a_frontier_marks_models_with_a_corrected_value(
    corrected_fits: dict[str, LawFit], corrected: Observations, read: Read
) -> None:
    capacity = corrected_fits["capacity"]
    drawing = read(draw_frontier(capacity, sizes=[148160, 262000]))
    assert NOTE in drawing.labels
    frame = corrected.frame.set_index(["size", "task", "weight"])["value"]
    expected = {
        (frame[262000, "en-de", 0.1], frame[262000, "en-zh", 0.9]),
        (frame[262000, "en-de", 0.9], frame[262000, "en-zh", 0.1]),
    }
    assert set(drawing.marks(CORRECTED)) == expected
    assert NOTE not in read(draw_frontier(capacity, sizes=[148160])).labels


def test_a_frontier_needs_two_tasks(observations: Observations) -> None:
    alone = replace(observations, frame=observations.frame[observations.frame["task"] == "en-de"])
    with pytest.raises(TableError, match="a frontier is drawn of two tasks, but the table has 1"):
        draw_frontier(fit(alone, law="capacity", uncertainty=Perturbation(refits=0)), sizes=[1e5])


def test_proposed_runs_are_numbered_and_share_a_ring(observations: Observations, read: Read) -> None:
    rows = {"task": "en-de", "size": [1e4, 1e5], "weight": [0.0, 0.5]}
    trained = replace(observations, frame=pd.DataFrame(rows))
    mixtures = ["en-de:0.3,en-zh:0.7", "en-de:0.9,en-zh:0.1", "en-de:0.3,en-zh:0.7"]
    runs = pd.DataFrame({"size": [1e6, 1e4, 1e6], "mixture": mixtures})
    design = Design(quantity="limit:en-de", std=0.1, runs=runs, candidates=runs, method="")
    figure = draw_design(design, trained, task="en-de")
    axes = figure.axes[0]
    assert {text.get_text(): text.xy for text in axes.texts} == {"1, 3": (1e6, 0.3), "2": (1e4, 0.9)}  # type: ignore[attr-defined]
    assert len(read(figure).marks("o")) == 2
    assert axes.get_xlim()[0] < 1e4 < 1e6 < axes.get_xlim()[1]
    assert axes.get_ylabel() == "weight p of en-de"
