"""The advice of an analysis, and the checks of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mnmt_laws.answers.mixtures.doubts import undetermined_parameters
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.back_test import back_tests
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.prediction import predict_interval
from mnmt_laws.forecasts.rivals import story_of
from mnmt_laws.report.advice import UNKNOWN_INTERVAL, Advice, Interval, MixtureShare, Trust, TrustRow, Verdict
from mnmt_laws.report.study import Study
from mnmt_laws.sentences.advice import advice_sentences
from mnmt_laws.tables.observations import learning_curves

_SIZE_FACTOR = 2.0
_ENDLESS = 1e30  # tokens
_FEWEST_POINTS = 4  # of a learning curve
_FEW = 5  # held-out values from which their common sign counts


def make_advice(study: Study) -> Advice:
    """Return the recommended mixture if the data determine it, and the runs to train otherwise."""
    recommendation = study.recommendation
    if recommendation is None:
        return _without_mixture(study)
    return Advice(
        headline=" ".join(filter(None, advice_sentences(recommendation))),
        determined=True,
        reasons=recommendation.warnings,
        mixture=_shares(recommendation),
        size=_number(recommendation.size),
        tokens=_number(recommendation.tokens),
        law=", ".join(f"{m.form.name} {m.share:.0%}" for m in recommendation.forecast.members),
    )


def _shares(recommendation: Recommendation) -> tuple[MixtureShare, ...]:
    """Return each source's share and, where a loss is measured on it, the prediction."""
    return tuple(
        MixtureShare(
            task=source,
            weight=weight,
            weight_interval=recommendation.ranges[source],
            predicted=recommendation.predicted.get(source, math.nan),
            prediction_interval=recommendation.intervals.get(source, UNKNOWN_INTERVAL),
        )
        for source, weight in recommendation.weights.items()
    )


def _without_mixture(study: Study) -> Advice:
    """Return the prediction for a larger model on the first task, where there is no mixture to advise."""
    where, alone = _larger_model(study.law), len(study.tasks) == 1
    start = "One task needs no mixture:" if alone else "No mixture is advised:"
    doubts = undetermined_parameters(study.law)
    predicted = _predicted(study, where) if alone else "train runs that mix the tasks"
    return Advice(
        headline=f"{start} {predicted}.",
        determined=alone and not doubts,
        size=_number(where.get("size")),
        tokens=_number(where.get("tokens")),
        law=f"{study.law.law.name} law",
        reasons=doubts if alone else (),
    )


def _predicted(study: Study, where: dict[str, Any]) -> str:
    task, metric = study.tasks[0], study.observations.metric
    new = predict_interval(study.law, task=task, **where)
    ends: Interval = (float(new.lower), float(new.upper))
    interval = "" if not np.isfinite(ends).all() else f" ({ends[0]:.4g} to {ends[1]:.4g})"
    size = f"at {format_size(where['size'])} parameters " if "size" in where else ""
    size += f"and {format_size(where['tokens'])} tokens " if "tokens" in where else ""
    return f"{size}{task} would reach {metric} {float(new.predicted):.4g}{interval}"


def _larger_model(law: LawFit) -> dict[str, Any]:
    """Return a model of twice the largest size fitted, trained as long as the longest."""
    largest = {
        "size": _SIZE_FACTOR * float(law.rows["size"].max()),
        "tokens": float(law.rows["tokens"].max()),
    }
    return {name: value for name, value in largest.items() if name in law.law.predictors}


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def make_trust(study: Study) -> Trust:
    """Return the checks that the table allows."""
    rows = [*_held_out_rows(study), *_back_test_rows(study), _law_row(study)]
    return Trust(rows=(*rows, _bounds_row(study), _training_row(study)))


def _held_out_rows(study: Study) -> Iterator[TrustRow]:
    held_out = study.held_out
    errors = held_out.errors()
    if errors.empty:
        yield TrustRow(
            label="Held-out error", value="not measured", verdict="unsure",
            explanation="No run was held out of the fits.",
        )  # fmt: skip
        return
    yield TrustRow(
        label="Held-out error",
        value=f"{errors.median():.1%}",
        verdict=_verdict(float(errors.median()), 0.02, 0.05),
        explanation=f"Median over {len(errors)} values of {held_out.num_runs} runs that the fit never saw; "
        f"at most {errors.max():.1%}.",
    )
    above, count = int(held_out.rows["error"].gt(0).sum()), len(errors)
    yield TrustRow(
        label="Their sign",
        value=held_out.signs,
        verdict=_sign_verdict(above, count),
        explanation="About half of the measured values should lie above the prediction.",
    )
    inside, known = held_out.num_inside
    yield TrustRow(
        label="Prediction interval",
        value=f"inside: {held_out.coverage}, {held_out.width:.1%} wide" if known else "not measured",
        verdict="unsure" if not known else _verdict(1 - inside / known, 0.1, 0.3),
        explanation=(held_out.intervals or "No run was predicted with an interval.") + held_out.caution,
    )


def _sign_verdict(above: int, count: int) -> Verdict:
    if count >= _FEW and above in (0, count):
        return "bad"
    return "good" if min(above, count - above) > count / 5 else "unsure"


def _back_test_rows(study: Study) -> Iterator[TrustRow]:
    for test in back_tests(study.law):
        what = {
            "size": "Largest size left out", "tokens": "Longest training left out",
            "compute": "Greatest compute left out",
        }  # fmt: skip
        yield TrustRow(
            label=what.get(test.left_out, "Mixtures left out"),
            value=f"{test.error:.1%}",
            verdict="bad" if test.chance < 0.01 else _verdict(test.error, 0.03, 0.1),
            explanation=test.describe(),
        )


def _law_row(study: Study) -> TrustRow:
    name = study.law.law.name
    try:
        comparison = study.comparison
    except (TableError, ArgumentError):
        text = f"The advice rests on the {name} law; no rivals were compared."
        return TrustRow(label="Preferred law", value="not compared", verdict="unsure", explanation=text)
    agrees = story_of(comparison.best) == story_of(name)
    return TrustRow(
        label="Preferred law",
        value=comparison.best or "undecided",
        verdict="unsure" if not comparison.decided else "good" if agrees else "bad",
        explanation=f"{comparison.preference} The advice rests on the {name} law.",
    )


def _bounds_row(study: Study) -> TrustRow:
    lines = undetermined_parameters(study.law)
    return TrustRow(
        label="Exponents and limits",
        value=f"{len(lines)} undetermined" if lines else "determined",
        verdict="bad" if lines else "good",
        explanation=lines[0] if lines else "The data hold the exponents and the limits of the law.",
    )


def _training_row(study: Study) -> TrustRow:
    """Return the share of the loss that longer training would remove, by the law or the learning curves."""
    if study.law.law.knows_length:
        share, text = _unlearned(study), "of the loss at the largest size and longest training would go "
        text = f"By the law, {share:.1%} {text}with training without end; it is part of the prediction."
        return TrustRow(
            label="Undertraining", value=f"{share:.1%}", verdict=_verdict(share, 0.01, 0.1), explanation=text
        )
    fall = late_fall(study)
    if math.isnan(fall):
        text = "There are no learning curves to tell by, and the law knows one training length only."
        return TrustRow(label="Undertraining", value="not known", verdict="unsure", explanation=text)
    return TrustRow(
        label="Undertraining",
        value=f"{fall:.1%}",
        verdict=_verdict(abs(fall), 0.005, 0.03),
        explanation="Median change over the last quarter of each run; the law knows no longer training.",
    )


def _unlearned(study: Study) -> float:
    """Return the greatest share of a task's loss that training without end would remove."""
    law, where = study.law, _larger_model(study.law)
    rows = law.rows
    shares = []
    for task in law.tasks:
        row = rows[rows["task"] == task].sort_values(["size", "tokens"]).tail(1)
        now, end = (
            float(law.predict(row.assign(tokens=tokens))[0]) for tokens in (where["tokens"], _ENDLESS)
        )
        shares.append(abs(1 - end / now))
    return max(shares)


def _verdict(value: float, good: float, bad: float) -> Verdict:
    return "good" if value <= good else "bad" if value > bad else "unsure"


def late_fall(study: Study) -> float:
    """Return the median relative change over the last quarter of runs; NaN without learning curves."""
    observations = study.observations
    rows = learning_curves(
        study.source.table,
        metric=observations.metric,
        testset=observations.testset or None,
        architecture=study.architecture,
    )
    changes = []
    for _, curve in rows[rows["run"].ne("") & rows["weight"].gt(0)].groupby(["run", "task"], sort=False):
        if curve["step"].nunique() >= _FEWEST_POINTS:
            end = float(curve["step"].max())
            earlier = float(np.interp(0.75 * end, curve["step"], curve["value"]))
            changes.append(1 - float(curve["value"].iloc[-1]) / earlier)
    return float(np.median(changes)) if changes else math.nan
