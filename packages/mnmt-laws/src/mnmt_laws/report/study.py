"""A table, and the fits and forecasts that the answers of a report share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mnmt_laws.answers.comparison import LawComparison, compare
from mnmt_laws.answers.comparison.preferred_law import preferred_law
from mnmt_laws.answers.fractions import EffectiveFractions, effective_fractions
from mnmt_laws.answers.predictions import HeldOut, predict_held_out
from mnmt_laws.answers.recommendation import Recommendation, recommend
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit, PriorChoice
from mnmt_laws.fitting.uncertainty import Uncertainty
from mnmt_laws.laws import LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.run_record import RunRecord
from mnmt_laws.tables.source import RunSource

_BIG = 3_000  # rows beyond which rivals are compared only by BIC, which already takes minutes
_SIMULATED = 100  # tables behind a verdict
_RECURRING = 3  # sizes that weights need for a law of each


@dataclass(frozen=True, kw_only=True)
class Study:
    """A run table, the advice from it, and what is computed once for several questions.

    A property that a table does not admit raises TableError.
    """

    source: RunSource
    observations: Observations
    objective: str
    uncertainty: Uncertainty

    prior: PriorChoice = "auto"
    """As in `fit`."""

    recommendation: Recommendation | None
    """The advised mixture at the usual size; None where no law predicts other mixtures."""

    refusal: str = ""
    """Why no mixture is advised."""

    @property
    def name(self) -> str:
        """The name of the study; empty without run records."""
        return next((record.study for record in self.records if record.study), "")

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """The run records, if the source is a folder of them."""
        return self.source.records

    @property
    def tasks(self) -> list[str]:
        """The fitted tasks."""
        return self.law.tasks

    @property
    def sizes(self) -> list[float]:
        """The observed sizes, ascending."""
        return sorted(float(size) for size in self.observations.frame["size"].unique())

    @property
    def architecture(self) -> str | None:
        """The architecture; None where none is recorded."""
        return self.observations.frame["architecture"].iloc[0] or None

    @property
    def has_mixtures(self) -> bool:
        """Whether models of several tasks were observed."""
        mixed = self.observations.frame["weight"].between(0, 1, inclusive="neither")
        return len(self.tasks) > 1 and bool(mixed.any())

    @property
    def wall_seconds(self) -> float:
        """The training time of all runs together, in seconds; NaN where none is recorded."""
        seconds = [record.wall_seconds for record in self.records if record.wall_seconds is not None]
        return math.fsum(seconds) if seconds else math.nan

    @cached_property
    def law(self) -> LawFit:
        """The law with a formula that describes the table best."""
        try:
            comparison = self.comparison
        except TableError:
            comparison = None
        return self.fit(preferred_law(self.observations, comparison))

    @cached_property
    def laws_by_weight(self) -> dict[str, LawFit]:
        """The joint and the per-weighting law by name, where weights recur at several sizes."""
        sizes = self.observations.fit.groupby(["task", "weight"])["size"].nunique()
        if sizes.empty or sizes.median() < _RECURRING:
            return {}
        laws = self._fit_if_possible("joint")
        if not laws or any(line.kind == "pooled" for line in laws["joint"].diagnostics):
            return {}
        return laws | self._fit_if_possible("per-weighting")

    def _fit_if_possible(self, law: LawName) -> dict[str, LawFit]:
        try:
            return {law: self.fit(law)}
        except (TableError, ArgumentError):
            return {}

    @property
    def joint(self) -> LawFit:
        """The law with one exponent and one limit for all weights."""
        if "joint" not in self.laws_by_weight:
            raise TableError(f"{self.observations.source}: no weight recurs at {_RECURRING} sizes.")
        return self.laws_by_weight["joint"]

    @cached_property
    def effective(self) -> EffectiveFractions:
        """Effective fractions of the joint law."""
        return effective_fractions(self.joint)

    @cached_property
    def held_out(self) -> HeldOut:
        """Predictions of the held-out runs."""
        return predict_held_out(self.law)

    @cached_property
    def comparison(self) -> LawComparison:
        """The rival laws side by side; of many rows without simulations and left-out errors."""
        big = len(self.observations.rows_to_fit(zero_shot=True)) > _BIG
        tables = 0 if big else _SIMULATED
        advice = self.recommendation
        return compare(
            self.observations, objective=self.objective, left_out=not big, tables=tables,
            forecast=None if advice is None else advice.forecast,
        )  # fmt: skip

    def fit(self, law: LawName | Law) -> LawFit:
        """Fit a law as the options of the report say."""
        return fit(
            self.observations,
            law=law,
            objective=self.objective,
            uncertainty=self.uncertainty,
            prior=self.prior,
        )

    def known_limit(self, task: str) -> float:
        """Return the task's known irreducible loss, NaN where there is none."""
        limit = self.observations.irreducible_of(task)
        return float(limit) if math.isfinite(limit) else math.nan


def advise(
    observations: Observations, preference: Mapping[str, float] | None
) -> tuple[Recommendation | None, str]:
    """Return the recommendation for the usual size, or None and the reason against."""
    try:
        return recommend(observations, preference=preference), ""
    except (TableError, ArgumentError) as error:
        return None, str(error).removeprefix(f"{observations.source}: ")
