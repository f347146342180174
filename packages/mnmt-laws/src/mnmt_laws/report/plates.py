"""The figures of a report, with captions that say how to read them."""

from __future__ import annotations

import math

from mnmt_laws.answers.quality import quality_lines
from mnmt_laws.figures.coefficients import draw_coefficients
from mnmt_laws.figures.correction import corrected_rows
from mnmt_laws.figures.fractions import draw_fractions
from mnmt_laws.figures.frontier import draw_frontier
from mnmt_laws.figures.heldout import draw_held_out
from mnmt_laws.figures.losses import draw_losses, draw_parallels
from mnmt_laws.figures.quality import QUALITY_NAMES, draw_quality
from mnmt_laws.figures.relative_gain import draw_relative_gain
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.answers import answer_plates
from mnmt_laws.report.plate import Plate, make_plate

FRONTIER = "Trade-off frontier"
_FRONTIER_SIZES = 8


def draw_plates(analysis: Analysis) -> list[Plate]:
    """Every figure of the report, in the order of the page."""
    plates = [_losses(analysis), _parallels(analysis), _coefficients(analysis), _fractions(analysis)]
    plates += _gains(analysis)
    if analysis.has_frontier:
        plates.append(_frontier(analysis))
    if not analysis.held_out.rows.empty:
        plates.append(_held_out(analysis))
    return plates + _quality(analysis) + answer_plates(analysis)


def _losses(analysis: Analysis) -> Plate:
    per_weighting, joint, capacity = analysis.fits
    corrected = corrected_rows(analysis.observations.frame).any()
    return make_plate(
        "Losses and laws",
        f"The {analysis.observations.metric} of each model over its size, a colour a weight. "
        "Solid: the joint law, one exponent and one limit for all weights. Dotted: a law a weight "
        "alone; where both coincide, the weight acts through the factor only. Hollow points were held out; "
        "dashed lines are the capacity law at weights it was not fitted to."
        + (" A diamond within a ring was corrected for convergence, here and below." if corrected else ""),
        [
            draw_losses(task=task, per_weighting=per_weighting, joint=joint, capacity=capacity)
            for task in analysis.tasks
        ],
    )


def _parallels(analysis: Analysis) -> Plate:
    return make_plate(
        "The same, above the limit",
        "With the joint limit L∞ subtracted and both axes logarithmic, laws of one exponent are parallel. "
        "Points that stray from their line at the largest sizes say that L∞ is off.",
        [draw_parallels(task=task, joint=analysis.joint) for task in analysis.tasks],
    )


def _coefficients(analysis: Analysis) -> Plate:
    return make_plate(
        "Coefficients over the weight",
        "Each law fitted to one weight alone. If the weight acts through β only, α and L∞ stay flat within "
        f"their bands, one standard deviation over {analysis.joint.parameters.attrs['uncertainty']}. "
        "Dashed: the joint law.",
        [
            draw_coefficients(
                task=task,
                per_weighting=analysis.per_weighting,
                joint=analysis.joint,
                irreducible=analysis.known_limit(task),
            )
            for task in analysis.tasks
        ],
    )


def _fractions(analysis: Analysis) -> Plate:
    return make_plate(
        "Effective share of the model",
        "f(p) = N_eff / N: the size of the single-task model that does as well, as a share of N. Above the "
        "diagonal a task has more of the model than its weight; the tasks share what they learn.",
        [
            draw_fractions(task=task, effective=analysis.effective, capacity=analysis.capacity)
            for task in analysis.tasks
        ],
    )


def _gains(analysis: Analysis) -> list[Plate]:
    """f(p) / p of all tasks, and of all test sets a task where there are several."""
    known = bool(analysis.effective.fractions.value.notnull().any())
    if not known:
        return []
    testsets = analysis.testsets or {}
    figures = [draw_relative_gain({"": analysis.effective})]
    if len(testsets) > 1:
        figures += [draw_relative_gain(testsets, task=task) for task in analysis.tasks]
    return [
        make_plate(
            "Relative gain",
            "How many times its weight a task has of the model, f(p) / p. At 1 it has just its share; lines "
            "that rise to the left gain most where they are trained least. Lines whose intervals overlap "
            "cannot be told apart.",
            figures,
        )
    ]


def _frontier(analysis: Analysis) -> Plate:
    sizes = analysis.sizes
    step = math.ceil(len(sizes) / _FRONTIER_SIZES)
    return make_plate(
        FRONTIER,
        "Both tasks as the weights change, one line a size, predicted by the capacity law. Points are "
        "trained models; hollow ones were held out. Lower left is better where the metric is a loss.",
        [draw_frontier(analysis.capacity, sizes=sizes[::-1][::step][::-1])],
    )


def _held_out(analysis: Analysis) -> Plate:
    return make_plate(
        "Held-out models",
        "Measured against predicted by the capacity law, which was fitted without them. On the dashed line "
        "a prediction is exact. The marker tells what the law had not seen.",
        [draw_held_out(analysis.held_out, analysis.observations)],
    )


def _quality(analysis: Analysis) -> list[Plate]:
    metrics = [name for name in analysis.quality.columns if name in QUALITY_NAMES]
    if not metrics:
        return []
    names = " and ".join(QUALITY_NAMES[metric] for metric in metrics)
    return [
        make_plate(
            "Translation quality against loss",
            f"{names} of every model against its loss, with a line a task and its correlation r; zero-shot "
            "tasks are left out. The closer r is to −1, the more of what the laws say of loss carries over "
            "to translations.",
            [
                draw_quality(analysis.quality, metric, quality_lines(analysis.quality, metric))
                for metric in metrics
            ],
        )
    ]
