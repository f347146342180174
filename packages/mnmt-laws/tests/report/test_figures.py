"""Figures of a report have a place on its page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from mnmt_laws import Perturbation
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.figures import draw_figures


def test_runs_read_at_a_horizon_have_learning_curves(
    one_task: pd.DataFrame, analyse_table: Callable[..., Analysis], read_page: Callable[[Analysis], Any]
) -> None:
    steps = range(200, 6401, 200)
    table = pd.concat(
        [one_task.assign(step=step, value=one_task["value"] * (1 + 20 / step**0.8)) for step in steps]
    )
    short = table["size"].eq(table["size"].max()) & table["weight"].eq(0.1)
    table = table[~short | table["step"].le(3200)]
    analysis = analyse_table(table, horizon=6400, uncertainty=Perturbation(refits=0))
    assert {curve.task for curve in analysis.curves or () if curve.corrected} == {"aa"}
    assert "Learning curves" in [group.title for group in draw_figures(analysis)]
    rows = read_page(analysis).cells("learning-curves-one-by-one")
    assert [row[5].endswith(" †") for row in rows] == [True]


def test_models_of_more_tasks_have_a_figure_and_a_table(
    three_analysis: Analysis, read_page: Callable[[Analysis], Any]
) -> None:
    titles = [group.title for group in draw_figures(three_analysis)]
    assert {"Models of more tasks", "Runs to train next"} <= set(titles)
    assert three_analysis.more_tasks is not None
    rows = read_page(three_analysis).cells("models-of-more-tasks-one-by-one")
    assert len(rows) == len(three_analysis.more_tasks.rows) == 3 * 4
    assert {row[2] for row in rows} == {"aa:0.25 bb:0.25 cc:0.5"}


def test_laws_that_know_length_have_a_figure(length_analysis: Analysis) -> None:
    groups = {group.title: group for group in draw_figures(length_analysis)}
    assert len(groups["Losses over training length"].charts) == 2
