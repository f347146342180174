"""How far to trust the advice: the average's record, and advice from smaller models beside measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mnmt_laws.answers.decision import back_test_advice
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.back_test import ROUNDING
from mnmt_laws.forecasts.forecast import Forecast
from mnmt_laws.report.study import Study
from mnmt_laws.sentences.advice import cost_text, tested_sentence
from mnmt_laws.tables.observations import learning_curves

Verdict = Literal["good", "unsure", "bad", "untested"]

_FEWEST_POINTS = 4  # of a learning curve
_FEWEST_TESTED = 0.5  # of the shares of the laws behind the advice
_RECORD = {
    "size": ("size_error", "Larger models", "sizes", "the largest size"),
    "tokens": ("length_error", "Longer training", "training lengths", "the longest training"),
    "mixture": ("mixture_error", "Other mixtures", "mixtures", "mixtures in turn"),
}


@dataclass(frozen=True, kw_only=True)
class TrustRow:
    """One check of the advice."""

    label: str
    """The name of the check."""

    value: str
    """The outcome, in a number or a few words."""

    verdict: Verdict

    explanation: str
    """The meaning of the outcome, in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Trust:
    """The checks of the advice."""

    rows: tuple[TrustRow, ...]

    @property
    def summary(self) -> str:
        """The verdict over all rows, in a sentence."""
        verdicts = [row.verdict for row in self.rows]
        untested = verdicts.count("untested")
        if untested == len(verdicts):
            return "Unknown: the table allows no check."
        rest = f", {untested} could not be made" if untested else ""
        if "bad" in verdicts:
            return f"With care: {verdicts.count('bad')} of {len(verdicts)} checks failed{rest}."
        if open_checks := verdicts.count("unsure"):
            are = "is" if open_checks == 1 else "are"
            return f"Somewhat: {open_checks} of {len(verdicts)} checks {are} undecided{rest}."
        if untested:
            return f"Somewhat: {verdicts.count('good')} of {len(verdicts)} checks passed{rest}."
        return "Well: every check passed."


def make_trust(study: Study) -> Trust:
    """Return the checks that the table allows."""
    return Trust(rows=(*_tested(study), *_record(study), *_held_out(study), *_training(study)))


def _tested(study: Study) -> Iterator[TrustRow]:
    """Yield what advice from smaller models would have cost at the largest size."""
    advice = study.recommendation
    if advice is None or len(advice.weights) == 1:
        return
    try:
        test = back_test_advice(study.observations, advice.want)
    except (TableError, ArgumentError):
        return
    yield TrustRow(
        label="Advice from smaller models",
        value=f"{cost_text(advice, test.realised)} above the best",
        verdict=_verdict(test.realised - test.stated, advice.amount, 3 * advice.amount),
        explanation=tested_sentence(advice, test),
    )


def _record(study: Study) -> Iterator[TrustRow]:
    """Yield the mean errors of the average's laws on what was left out, weighted by their shares."""
    advice = study.recommendation
    if advice is None:
        return
    table = advice.forecast.table
    laws = table[table["law"].isin([member.form.name for member in advice.forecast.members])]
    for axis, (column, label, values, what) in _RECORD.items():
        tested = laws[laws[column].notna()]
        if tested["share"].sum() >= _FEWEST_TESTED * laws["share"].sum():
            error = float(np.average(tested[column], weights=tested["share"]))
            yield TrustRow(
                label=label,
                value=f"{error:.1%}",
                verdict=_verdict(error, 0.03, 0.1),
                explanation=f"Error of the laws behind the advice, by their shares, fitted without {what}.",
            )
        elif _goes_beyond(advice.forecast, axis):
            yield TrustRow(
                label=label,
                value="not tested",
                verdict="untested",
                explanation=f"The table has too few {values} to test most of the laws behind the advice.",
            )


def _goes_beyond(forecast: Forecast, axis: str) -> bool:
    """Return whether the advice leaves what was trained: mixtures always, where there are any to choose."""
    if axis == "mixture":
        return len(forecast.sources) > 1
    return axis in forecast.at and forecast.at[axis] > (1 + ROUNDING) * forecast.best.rows[axis].max()


def _held_out(study: Study) -> Iterator[TrustRow]:
    held_out = study.held_out
    errors = held_out.errors()
    if errors.empty:
        return
    inside, known = held_out.num_inside
    text = f"Median error of the {held_out.law} law over {len(errors)} values of "
    text += f"{held_out.num_runs} runs that no fit saw."
    text += f" The 95% intervals hold {inside} of {known}." if known else ""
    yield TrustRow(
        label="Held-out models",
        value=f"{errors.median():.1%}",
        verdict=max(
            _verdict(float(errors.median()), 0.03, 0.1),
            _verdict(1 - inside / known, 0.1, 0.3) if known else "good",
            key=("good", "unsure", "bad").index,
        ),
        explanation=text,
    )


def _training(study: Study) -> Iterator[TrustRow]:
    """Yield how much losses still fell at the end of training."""
    fall = late_fall(study)
    if math.isnan(fall):
        return
    yield TrustRow(
        label="Undertraining",
        value=f"{fall:.1%}",
        verdict=_verdict(abs(fall), 0.005, 0.03),
        explanation="Median change over the last quarter of each run: advice is for models trained as long.",
    )


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


def _verdict(value: float, good: float, bad: float) -> Verdict:
    return "good" if value <= good else "bad" if value > bad else "unsure"
