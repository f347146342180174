"""What the first screen of a report says: the advice, and how far to trust it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from mnmt_laws.report.text import TextTable

Interval = tuple[float, float]
Verdict = Literal["good", "unsure", "bad"]

UNKNOWN_INTERVAL: Interval = (math.nan, math.nan)


@dataclass(frozen=True, kw_only=True)
class MixtureShare:
    """One task's part in an advised mixture, and what the law predicts for it."""

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
    """What to train next, or the runs that would determine it."""

    headline: str
    """The answer in a sentence."""

    determined: bool
    """Whether the data determine the answer; if not, the page shows the next runs in its place."""

    reasons: tuple[str, ...] = ()
    """Why the data do not determine it, or what to keep in mind; a sentence each."""

    mixture: tuple[MixtureShare, ...] = ()
    """The advised mixture, a share for each task; empty where there is none."""

    size: float = math.nan
    """N of the advised model, parameters."""

    tokens: float = math.nan
    """Its training length, target tokens of all tasks; NaN where the law does not know it."""

    law: str = ""
    """The law that the advice rests on, in words."""

    next_runs: TextTable | None = None
    """The runs to train next, and what each would buy."""

    next_runs_toml: tuple[str, ...] = ()
    """The studies that train these runs."""


@dataclass(frozen=True, kw_only=True)
class TrustRow:
    """One reason to trust the advice, or not to."""

    label: str
    """What was checked."""

    value: str
    """The outcome, in a number or a few words."""

    verdict: Verdict

    explanation: str
    """What the outcome means, in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Trust:
    """How far to trust the advice."""

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
