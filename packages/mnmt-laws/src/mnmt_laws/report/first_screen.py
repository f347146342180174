"""The first screen of a report: the answer, its cost, what is at stake, and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_laws.answers.decision import Measured, Question, cost_curve, measured_costs
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.figures.costs import draw_costs, draw_mixture
from mnmt_laws.figures.losses import draw_losses
from mnmt_laws.report.answer import FigureGroup
from mnmt_laws.report.study import Study
from mnmt_laws.report.text import TextTable
from mnmt_laws.report.trust import Trust, make_trust
from mnmt_laws.sentences.advice import (
    advice_sentences,
    average_sentence,
    chance_text,
    cost_text,
    mixture_of,
    prediction_sentence,
    regret_sentence,
)


@dataclass(frozen=True, kw_only=True)
class FirstScreen:
    """The answer to the question which mixture to train."""

    headline: str
    """The answer in a sentence."""

    sentences: tuple[str, ...] = ()
    """The weights that cost little, and what is at stake."""

    figure: FigureGroup | None = None

    stakes: TextTable | None = None
    """The mixtures that one could take instead."""

    trust: Trust
    """The checks of the answer."""

    average: str = ""
    """The laws that it rests on, in a sentence."""

    cautions: tuple[str, ...] = ()
    """The ways in which it leaves the observed range."""


def first_screen(study: Study) -> FirstScreen:
    """Return the first screen of a study."""
    advice, trust = study.recommendation, make_trust(study)
    if advice is None:
        return FirstScreen(headline=_nothing(study), trust=trust)
    headline, *rest = filter(None, advice_sentences(advice))
    alone = len(advice.weights) == 1
    return FirstScreen(
        headline=prediction_sentence(advice) if alone else headline,
        sentences=() if alone else tuple(rest),
        figure=_losses(study) if alone else _figure(study, advice),
        stakes=None if alone else _stakes(advice),
        trust=trust,
        average=average_sentence(advice),
        cautions=advice.warnings,
    )


def _nothing(study: Study) -> str:
    if len(study.tasks) == 1:
        return f"One task, {study.tasks[0]}, needs no mixture."
    return f"No mixture is advised: {study.refusal}"


def _losses(study: Study) -> FigureGroup:
    law, task = study.law, study.tasks[0]
    caption = f"The {study.observations.metric} of each model over its size, and the {law.law.name} law."
    return FigureGroup("Loss over size", caption, lambda: [draw_losses(task=task, joint=law)])


def _figure(study: Study, advice: Recommendation) -> FigureGroup:
    if len(advice.weights) > 2:
        rule = advice.rivals[0] if advice.rivals else None
        weights = advice.weights if rule is None else rule.weights
        name = advice.rule if rule is None else rule.name
        return FigureGroup(
            "The advised mixture",
            "Bars: the advised weights. Lines: weights that are expected to cost less than one run scatters, "
            "the others kept in proportion.",
            lambda: [draw_mixture(advice.weights, advice.ranges, weights, name=name)],
        )
    source = advice.forecast.sources[0]
    unit = advice.forecast.observations.unit.split(" per ")[0]
    question = Question(forecast=advice.forecast, want=advice.want, limits=advice.limits)
    return FigureGroup(
        "Cost over the weight",
        "What other weights are expected to cost more: the mean, and the central 80% of the draws. Green: "
        "less than one run scatters. Grey: models, as if the one nearest to the advice lay on the curve.",
        lambda: [
            draw_costs(
                cost_curve(question, advice.weights), advised=advice.weights[source],
                cheap=advice.ranges[source], rivals=advice.rivals, source=source, unit=unit,
                measured=_measured(study, advice),
            )
        ],
    )  # fmt: skip


def _measured(study: Study, advice: Recommendation) -> Measured | None:
    try:
        measured = measured_costs(study.observations, advice.want)
    except (TableError, ArgumentError):
        return None
    return measured if measured.sources == advice.forecast.sources else None


def _stakes(advice: Recommendation) -> TextTable:
    rows = tuple(
        (
            rival.name,
            mixture_of(rival.weights),
            cost_text(advice, rival.loss),
            " to ".join(cost_text(advice, end, unit=False) for end in rival.interval),
            chance_text(rival.chance),
        )
        for rival in advice.rivals
    )
    return TextTable(
        title="What is at stake",
        note=regret_sentence(advice),
        header=("instead", "weights", "costs more", "95%", "advice is better"),
        rows=rows,
    )
