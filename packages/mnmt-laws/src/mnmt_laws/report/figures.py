"""The figures of a report, with captions that explain them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from mnmt_laws.answers.quality import quality_lines
from mnmt_laws.figures.coefficients import draw_coefficients
from mnmt_laws.figures.comparison import draw_comparison
from mnmt_laws.figures.decisions import draw_design, draw_frontier
from mnmt_laws.figures.losses import draw_lengths, draw_losses
from mnmt_laws.figures.predictions import draw_held_out
from mnmt_laws.figures.quality import QUALITY_NAMES, draw_quality
from mnmt_laws.figures.style import Chart, chart_spec, format_size, panels_of, to_svg
from mnmt_laws.figures.weights import draw_fractions, draw_fractions_by_size, draw_relative_gain
from mnmt_laws.report.analysis import Analysis

FRONTIER = "Trade-off frontier"
_FRONTIER_SIZES = 8


@dataclass(frozen=True)
class FigureGroup:
    """Figures that share a heading and a caption."""

    title: str
    """The heading."""

    caption: str
    """The sentences that explain the figures."""

    charts: Sequence[Chart]
    """The charts, each of one panel or several."""

    wide: bool = False
    """Whether a chart takes the whole width of the page."""

    @property
    def specs(self) -> tuple[dict[str, Any], ...]:
        """Vega-Lite of each panel, for a page to embed; a panel takes the width of its place."""
        return tuple(chart_spec(panel) for chart in self.charts for panel in panels_of(chart))

    @cached_property
    def panels(self) -> tuple[bytes, ...]:
        """The SVG of each chart."""
        return tuple(to_svg(chart) for chart in self.charts)

    def files(self) -> dict[str, bytes]:
        """Return the charts by file name, such as `trade-off-frontier-1.svg`."""
        stem = re.sub(r"[^a-z]+", "-", self.title.lower())
        return {f"{stem}-{number}.svg": panel for number, panel in enumerate(self.panels, start=1)}


def draw_figures(analysis: Analysis) -> list[FigureGroup]:
    """Draw every figure of the report, in the order of the page.

    Args:
        analysis: The analysis to draw.
    """
    groups = [_losses(analysis)] if analysis.joint is not None else []
    groups += _lengths(analysis)
    groups = [*(groups or [_predicted(analysis)]), *_coefficients(analysis)]
    if analysis.law.law.fraction is not None and len(analysis.law.sources) == 2:
        groups.append(_fractions(analysis))
    groups += [*_gains(analysis), *_fractions_by_size(analysis)]
    if analysis.has_frontier:
        groups.append(_frontier(analysis))
    if not analysis.held_out.rows.empty:
        groups.append(_held_out(analysis))
    return groups + _quality(analysis) + _answer_groups(analysis)


def _predicted(analysis: Analysis) -> FigureGroup:
    """Draw losses over size by the law of the advice."""
    charts = [draw_losses(task=task, joint=analysis.law) for task in analysis.tasks]
    metric, law = analysis.observations.metric, analysis.law.law.name
    return FigureGroup(
        "Losses and laws", f"The {metric} of each model over its size, and the {law} law.", charts
    )


def _lengths(analysis: Analysis) -> list[FigureGroup]:
    if not analysis.law.law.knows_length:
        return []
    text = (
        f"The {analysis.observations.metric} of each model over its training length, and the law at its size."
    )
    return [
        FigureGroup(
            "Losses over training length",
            text,
            [draw_lengths(analysis.law, task=task) for task in analysis.tasks],
        )
    ]


def _losses(analysis: Analysis) -> FigureGroup:
    assert analysis.joint is not None  # the caller has checked it
    law = analysis.law if analysis.law.law.knows_mixture and not analysis.law.law.knows_length else None
    return FigureGroup(
        "Losses and laws",
        f"The {analysis.observations.metric} of each model over its size, one colour for each weight. "
        "Solid: the joint law, one exponent and one limit for all weights. Dotted: each weight's "
        "own law; where both coincide, the weight acts through the factor only. Hollow points were held out; "
        f"dashed lines are the {analysis.law.law.name} law at weights it was not fitted to.",
        [
            draw_losses(
                task=task,
                per_weighting=analysis.per_weighting,
                joint=analysis.joint,
                capacity=law,
            )
            for task in analysis.tasks
        ],
    )


def _coefficients(analysis: Analysis) -> list[FigureGroup]:
    """Draw α, β and L∞ of curves over size, over the weight and, where lengths vary, the exposure."""
    if analysis.exposure is None or analysis.exposure.exponents is None:
        return []
    exponents, free = analysis.exposure.exponents, analysis.exposure.free
    joint = analysis.joint if free is None else None
    charts = [
        draw_coefficients(
            exponents, task=task, limits=free, joint=joint, irreducible=analysis.known_limit(task)
        )
        for task in sorted(exponents.curves["task"].unique())
    ]
    if free is None:
        caption = f"{_ONE_LENGTH} {exponents.describe()}"
        return [FigureGroup("Coefficients over the weight", caption, charts)]
    origin = "L∞ known" if exponents.limits == "known" else "L∞ = 0"
    return [FigureGroup("Coefficients over weight and exposure", _LENGTHS.format(origin), charts)]


_ONE_LENGTH = (
    "Each curve over size fitted alone, ± one standard deviation. If the weight acts through β only, α and "
    "L∞ stay flat. Dashed: the joint law, and the true limit where it is known."
)
_LENGTHS = (
    "Each curve over size fitted alone, ± one standard deviation: α and β with {}, L∞ free. Left over the "
    "weight, right over what the models read of the task, a colour for each training length. Where the "
    "lengths fall on one line on the right, a coefficient follows the exposure and not the weight."
)


def _fractions(analysis: Analysis) -> FigureGroup:
    return FigureGroup(
        "Effective share of the model",
        "f(p) = N_eff / N: the size of the single-task model that does as well, as a share of N. Above the "
        "diagonal a task has more of the model than its weight; the tasks share what they learn.",
        [
            draw_fractions(task=task, effective=analysis.effective, laws=analysis.law)
            for task in analysis.tasks
        ],
    )


def _gains(analysis: Analysis) -> list[FigureGroup]:
    """Draw f(p) / p of all tasks."""
    effective = analysis.effective
    if effective is None or not bool(effective.fractions.value.notnull().any()):
        return []
    return [
        FigureGroup(
            "Relative gain",
            "How many times its weight a task has of the model, f(p) / p. At 1 it has just its share; lines "
            "that rise to the left gain most where they are trained least. Lines whose intervals overlap "
            "cannot be told apart.",
            [draw_relative_gain({"": effective})],
        )
    ]


def _fractions_by_size(analysis: Analysis) -> list[FigureGroup]:
    """Draw f of each size without a law."""
    fractions = pd.DataFrame() if analysis.exposure is None else analysis.exposure.fractions
    if fractions.empty or fractions["value"].count() < 2:
        return []
    return [
        FigureGroup(
            "Effective share by size",
            "f = N_eff / N read from the losses without a law: the size of the single-task model of equal "
            "loss, trained as long, over N. Arrows down: the model is worse than the smallest trained alone, "
            "so only a bound is known. Most laws take f for the same at every size.",
            [draw_fractions_by_size(fractions, task=task) for task in sorted(fractions["task"].unique())],
        )
    ]


def _frontier(analysis: Analysis) -> FigureGroup:
    sizes = analysis.sizes
    step = math.ceil(len(sizes) / _FRONTIER_SIZES)
    length = _longest(analysis)
    trained = f" trained on {format_size(length['tokens'])} tokens" if length else ""
    return FigureGroup(
        FRONTIER,
        "Both tasks as the weights change, one line for each size, predicted by the law of the advice. "
        f"Points are models{trained}; hollow ones were held out. Lower left is better where the metric is a "
        "loss.",
        [draw_frontier(analysis.law, sizes=sizes[::-1][::step][::-1], **length)],
    )


def _longest(analysis: Analysis) -> dict[str, float]:
    """Return the longest training fitted, for a law that knows the length."""
    return {"tokens": float(analysis.law.rows["tokens"].max())} if analysis.law.law.knows_length else {}


def _held_out(analysis: Analysis) -> FigureGroup:
    return FigureGroup(
        "Held-out models",
        f"Measured against predicted by the {analysis.law.law.name} law, fitted without them. On the dashed "
        "line a prediction is exact. The marker tells what the law had not seen.",
        [draw_held_out(analysis.held_out, analysis.observations)],
    )


def _quality(analysis: Analysis) -> list[FigureGroup]:
    metrics = [name for name in analysis.quality.columns if name in QUALITY_NAMES]
    if not metrics:
        return []
    names = " and ".join(QUALITY_NAMES[metric] for metric in metrics)
    return [
        FigureGroup(
            "Translation quality against loss",
            f"{names} of every model against its loss, with a line for each task and its correlation r; "
            "zero-shot tasks are left out. The closer r is to −1, the more of what the laws say of loss "
            "carries over to translations.",
            [
                draw_quality(analysis.quality, metric, quality_lines(analysis.quality, metric))
                for metric in metrics
            ],
        )
    ]


def _answer_groups(analysis: Analysis) -> list[FigureGroup]:
    """Draw the figures of every question that the table can answer."""
    questions = (_comparison, _design)
    groups = (question(analysis) for question in questions)
    return [group for group in groups if group is not None]


def _comparison(analysis: Analysis) -> FigureGroup | None:
    if analysis.comparison is None:
        return None
    return FigureGroup(
        "What the mixture acts through" if analysis.has_mixtures else "Laws compared",
        "Rival laws; where weights vary, they move the factor β, the limit L∞, the exponent α, or all. "
        "First: BIC above the best law's, where more than 2 counts and more than 10 decides. The others: "
        "errors on what a law was not fitted to. The shorter, the better.",
        [draw_comparison(analysis.comparison.table)],
        wide=True,
    )


def _design(analysis: Analysis) -> FigureGroup | None:
    if analysis.design is None or analysis.design.runs.empty:
        return None
    tasks = analysis.tasks
    drawn_tasks = tasks[:1] if len(tasks) == 2 else tasks  # of two tasks, the other has the rest
    return FigureGroup(
        "Runs to train next",
        "Dots are models that exist; rings are proposed, in the order in which they remove most expected "
        "regret for their FLOPs.",
        [draw_design(analysis.design, analysis.observations, task=task) for task in drawn_tasks],
    )
