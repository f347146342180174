"""The first screen of a report: the advice, and the reasons to trust it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Interval = tuple[float, float]
Verdict = Literal["good", "unsure", "bad"]

UNKNOWN_INTERVAL: Interval = (math.nan, math.nan)


@dataclass(frozen=True, kw_only=True)
class MixtureShare:
    """One task's share of an advised mixture, and the law's prediction for it."""

    task: str

    weight: float
    """Share of the training mixture, from 0 to 1."""

    weight_interval: Interval = UNKNOWN_INTERVAL
    """95% interval of the best weight; NaN where it is unknown."""

    predicted: float = math.nan
    """The predicted metric of the task."""

    prediction_interval: Interval = UNKNOWN_INTERVAL
    """95% interval of the metric that a new model would have."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The model to train next, or the runs that would determine it."""

    headline: str
    """The answer in a sentence."""

    determined: bool
    """Whether the data determine the answer; if not, the page shows the next runs in its place."""

    reasons: tuple[str, ...] = ()
    """Reasons why the data do not determine it, or cautions; a sentence each."""

    mixture: tuple[MixtureShare, ...] = ()
    """The advised mixture, a share for each task; empty where there is none."""

    size: float = math.nan
    """N of the advised model, parameters."""

    tokens: float = math.nan
    """Its training length, target tokens of all tasks; NaN where the law does not know it."""

    law: str = ""
    """The law that the advice rests on, in words."""


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
        if "bad" in verdicts:
            return f"With care: {verdicts.count('bad')} of {len(verdicts)} checks failed."
        if open_checks := verdicts.count("unsure"):
            are = "is" if open_checks == 1 else "are"
            return f"Somewhat: {open_checks} of {len(verdicts)} checks {are} undecided."
        return "Well: every check passed."
