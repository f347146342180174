"""Figures of the questions that only some reports ask."""

from __future__ import annotations

import pandas as pd

from mnmt_laws.answers.design import Design
from mnmt_laws.figures.comparison import draw_comparison
from mnmt_laws.figures.design import draw_design
from mnmt_laws.figures.intervals import draw_intervals
from mnmt_laws.figures.learning_curves import draw_learning_curves
from mnmt_laws.figures.more_tasks import draw_more_tasks
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.plate import Plate, make_plate
from mnmt_laws.tables.mixture import parse_mixture


def answer_plates(analysis: Analysis) -> list[Plate]:
    """A plate for every question that was asked."""
    questions = (_comparison, _intervals, _more_tasks, _curves, _design)
    plates = (question(analysis) for question in questions)
    return [plate for plate in plates if plate is not None]


def _comparison(analysis: Analysis) -> Plate | None:
    if analysis.comparison is None:
        return None
    return make_plate(
        "What the mixture acts through",
        "Laws in which the weights move the factor β, the limit L∞, the exponent α, or all three. Left: BIC "
        "above the best law's, where more than 2 counts and more than 10 decides. Middle and right: errors "
        "on what a law was not fitted to. The shorter, the better.",
        [draw_comparison(analysis.comparison.table)],
        wide=True,
    )


def _intervals(analysis: Analysis) -> Plate | None:
    if analysis.intervals is None or analysis.intervals.empty:
        return None
    return make_plate(
        "Intervals by method",
        "95% intervals of the joint law's parameters. Methods that agree leave little doubt; where they do "
        "not, trust the widest.",
        [draw_intervals(analysis.intervals)],
        wide=True,
    )


def _more_tasks(analysis: Analysis) -> Plate | None:
    if analysis.more_tasks is None or analysis.more_tasks.rows.empty:
        return None
    observations = analysis.observations
    return make_plate(
        "Models of more tasks",
        "Lines and 95% bands are predicted from models of one and two tasks; points were measured. "
        f"Median error {analysis.more_tasks.median_error:.1%}.",
        [draw_more_tasks(analysis.more_tasks.rows, metric=observations.metric, unit=observations.unit)],
        wide=True,
    )


def _curves(analysis: Analysis) -> Plate | None:
    if not analysis.curves:
        return None
    tasks = sorted({curve.task for curve in analysis.curves})
    metric = f"{analysis.observations.metric} ({analysis.observations.unit})"
    return make_plate(
        "Learning curves",
        "What runs measured as they trained, and the power law fitted to it, read at the dotted horizon. "
        "A diamond within a ring takes the place of the last measurement; a circle changes nothing.",
        [draw_learning_curves(analysis.curves, task=task, metric=metric) for task in tasks],
    )


def _design(analysis: Analysis) -> Plate | None:
    if analysis.design is None or analysis.design.runs.empty:
        return None
    rows, tasks = analysis.observations.frame, analysis.tasks
    shown = tasks[:1] if len(tasks) == 2 else tasks  # of two tasks, the other has the rest
    return make_plate(
        "Runs to train next",
        f"Dots are models that exist; rings are proposed, in the order in which they tell most about "
        f"{analysis.design.quantity}.",
        [
            draw_design(
                existing=rows[rows["task"] == task], proposed=_proposed(analysis.design, task), task=task
            )
            for task in shown
        ],
    )


def _proposed(design: Design, task: str) -> pd.DataFrame:
    """`size`, `weight` of a task and `order` of every proposed run."""
    weights = [parse_mixture(mixture, "design").get(task, 0.0) for mixture in design.runs["mixture"]]
    return pd.DataFrame({"size": design.runs["size"], "weight": weights, "order": range(1, len(weights) + 1)})
