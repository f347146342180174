"""How far to trust the advice: the average's record, and advice from smaller models beside measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mnmt_laws.answers.decision import back_test_advice
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.report.study import Study
from mnmt_laws.sentences.advice import cost_text, tested_sentence
from mnmt_laws.tables.observations import learning_curves

Verdict = Literal["good", "unsure", "bad"]

_FEWEST_POINTS = 4  # of a learning curve
_RECORD = {
    "size_error": ("Larger models", "the largest size"),
    "length_error": ("Longer training", "the longest training"),
    "mixture_error": ("Other mixtures", "mixtures in turn"),
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
        if not verdicts:
            return "Unknown: the table allows no check."
        if "bad" in verdicts:
            return f"With care: {verdicts.count('bad')} of {len(verdicts)} checks failed."
        if open_checks := verdicts.count("unsure"):
            are = "is" if open_checks == 1 else "are"
            return f"Somewhat: {open_checks} of {len(verdicts)} checks {are} undecided."
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
    table = None if advice is None else advice.forecast.table
    for column, (label, what) in _RECORD.items():
        known = None if table is None else table[table[column].notna() & (table["share"] > 0)]
        if known is None or known.empty:
            continue
        error = float(np.average(known[column], weights=known["share"]))
        yield TrustRow(
            label=label,
            value=f"{error:.1%}",
            verdict=_verdict(error, 0.03, 0.1),
            explanation=f"Error of the laws behind the advice, by their shares, fitted without {what}.",
        )


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
