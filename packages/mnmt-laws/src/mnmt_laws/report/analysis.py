"""The contents of a report, computed once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mnmt_laws.answers.claims import Claim, check_claims
from mnmt_laws.answers.comparison import LawComparison, compare
from mnmt_laws.answers.comparison.preferred_law import preferred_law
from mnmt_laws.answers.design.next_runs import Design, design
from mnmt_laws.answers.fractions import EffectiveFractions, effective_fractions, fractions_of_testsets
from mnmt_laws.answers.predictions import HeldOut, compare_irreducible, predict_held_out, predict_more_tasks
from mnmt_laws.answers.quality import pair_metrics
from mnmt_laws.answers.recommendation import Recommendation, recommend
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.profile import intervals_by_method
from mnmt_laws.fitting.uncertainty import Perturbation, Uncertainty
from mnmt_laws.laws import LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.report.exposure import Exposure, answer_exposure
from mnmt_laws.tables.observations import Observations, learning_curves
from mnmt_laws.tables.run_record import RunRecord
from mnmt_laws.tables.source import RunSource, observe
from mnmt_laws.tables.table import RunTable

Answer = TypeVar("Answer")
Progress = Callable[[str], None]
"""A function that is called with the name of each stage as it begins."""


def no_progress(stage: str) -> None:
    """Ignore a stage."""


_EXCESS = 1.5  # times the stated noise: scatter beyond it is reported
_SIZE_FACTOR = 2.0  # times the largest size observed: where a mixture and runs are recommended
_MIN_REFITS = 10
_BIG = 3_000  # rows beyond which rivals are compared only by BIC, which already takes minutes
_SIMULATED = 100  # tables behind a verdict
_FEWEST_POINTS = 4  # of a learning curve
_RECURRING = 3  # sizes that weights need for a law of each


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The fits of a study and the answers from them; None where the table cannot answer a question."""

    study: str
    """The name of the study; empty without run records."""

    observations: Observations
    """The observations that laws are fitted to."""

    law: LawFit
    """The law that advice and predictions rest on: the preferred one that predicts any mixture."""

    joint: LawFit | None
    """The law with one exponent and one limit for all weights, where weights recur at several sizes."""

    per_weighting: LawFit | None
    """The per-weighting law, where some weight has three sizes."""

    effective: EffectiveFractions | None
    """Effective fractions of the joint law."""

    held_out: HeldOut
    """Predictions of the held-out runs."""

    irreducible: pd.DataFrame
    """The joint law's limits beside the known irreducible losses."""

    claims: tuple[Claim, ...]
    """The claims of the paper, checked."""

    quality: pd.DataFrame
    """Loss and every other metric of the test set, a row for each task that a run was trained on."""

    records: tuple[RunRecord, ...]
    """The run records, if the source is a folder of them."""

    warnings: tuple[str, ...]
    """A line for everything that was left out or is undetermined."""

    late_fall: float = math.nan
    """Median relative change over the last quarter of the runs' training; NaN without learning curves."""

    comparison: LawComparison | None = None
    """The rival laws: which parameter the mixture acts through."""

    recommendation: Recommendation | None = None
    """The recommended mixture at twice the largest size."""

    design: Design | None = None
    """The runs to train next."""

    exposure: Exposure | None = None
    """What exponents follow, and transfer at equal exposure."""

    testsets: Mapping[str, EffectiveFractions] | None = None
    """Effective fractions of each test set, if there are several."""

    more_tasks: pd.DataFrame | None = None
    """Predictions of models of three and more tasks from those of one and two."""

    intervals: pd.DataFrame | None = None
    """Intervals of the joint law by refits and by profile likelihood; see `intervals_by_method`."""

    @property
    def fits(self) -> tuple[LawFit, ...]:
        """Every fit: of the preferred law, and of the joint and the per-weighting law where there are any."""
        laws = {fit.law.name: fit for fit in (self.law, self.joint, self.per_weighting) if fit is not None}
        return tuple(laws.values())

    @property
    def tasks(self) -> list[str]:
        """The fitted tasks."""
        return self.law.tasks

    @property
    def sizes(self) -> list[float]:
        """The observed sizes, ascending."""
        return sorted(float(size) for size in self.observations.frame["size"].unique())

    @property
    def has_frontier(self) -> bool:
        """Whether models of exactly two tasks were observed."""
        return len(self.tasks) == 2 and self.has_mixtures

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

    def known_limit(self, task: str) -> float:
        """Return the task's known irreducible loss, NaN where there is none."""
        limits = self.irreducible.loc[self.irreducible["task"] == task, "true"]
        return float(limits.iloc[0]) if len(limits) else math.nan


def analyse(
    source: RunSource,
    *,
    metric: str | None,
    testset: str | None,
    architecture: str | None,
    objective: str,
    uncertainty: Uncertainty,
    preference: Mapping[str, float] | None = None,
    progress: Progress = no_progress,
) -> Analysis:
    """Fit the three laws and answer every question that the table can answer.

    Args:
        source: The run table.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.
        objective: As in `fit`.
        uncertainty: As in `fit`.
        preference: The importance of each task's loss; by default all are equal.
        progress: Called with the name of each stage as it begins.

    Raises:
        TableError: If no law can be fitted.
    """
    progress("read the table")
    observations = observe(source.table, metric=metric, testset=testset, architecture=architecture)
    progress("fit the laws and rulers, and test them on what is left out")
    advice = _if_possible(lambda: _recommendation(observations, preference))
    progress("compare rival laws")
    comparison = _compare(observations, objective)
    progress("fit the laws")

    def fit_law(law: LawName | Law) -> LawFit:
        return fit(observations, law=law, objective=objective, uncertainty=uncertainty)

    law = fit_law(preferred_law(observations, None if advice is None else advice.forecast))
    joint, per_weighting = _weight_laws(observations, fit_law)
    effective = None if joint is None else effective_fractions(joint)
    progress("answer the questions")
    warnings = [
        *source.warnings,
        *(() if effective is None else effective.warnings),
        *_scatter_warning(law, uncertainty),
        *_fit_warnings(law),
    ]
    return Analysis(
        study=next((record.study for record in source.records if record.study), ""),
        observations=observations,
        law=law,
        joint=joint,
        per_weighting=per_weighting,
        effective=effective,
        held_out=predict_held_out(law),
        irreducible=compare_irreducible(law),
        claims=_claims(per_weighting, joint, effective),
        quality=_quality(source.table, observations),
        records=source.records,
        warnings=tuple(dict.fromkeys(warnings)),
        late_fall=_late_fall(source.table, observations),
        comparison=comparison,
        recommendation=advice,
        design=None if advice is None else _if_possible(lambda: design(advice)),
        exposure=answer_exposure(observations, uncertainty),
        testsets=None if joint is None else _if_possible(lambda: _testsets(source.table, joint, uncertainty)),
        more_tasks=_if_possible(
            lambda: predict_more_tasks(observations, objective=objective, uncertainty=uncertainty)
        ),
        intervals=None if joint is None else intervals_by_method(joint),
    )


def _compare(observations: Observations, objective: str) -> LawComparison | None:
    """Return the rival laws side by side; of many rows without simulations and left-out errors."""
    big = len(observations.rows_to_fit(zero_shot=True)) > _BIG
    tables = 0 if big else _SIMULATED
    return _if_possible(lambda: compare(observations, objective=objective, left_out=not big, tables=tables))


def _weight_laws(
    observations: Observations, fit_law: Callable[[LawName], LawFit]
) -> tuple[LawFit | None, LawFit | None]:
    """Return the joint and the per-weighting law, where weights tell mixtures apart and recur over sizes."""
    rows = observations.fit
    sizes = rows.groupby(["task", "weight"])["size"].nunique()
    if sizes.empty or sizes.median() < _RECURRING:
        return None, None
    joint = _if_possible(lambda: fit_law("joint"))
    if joint is None or any(line.kind == "pooled" for line in joint.diagnostics):
        return None, None
    return joint, _if_possible(lambda: fit_law("per-weighting"))


def _claims(
    per_weighting: LawFit | None, joint: LawFit | None, effective: EffectiveFractions | None
) -> tuple[Claim, ...]:
    if per_weighting is None or joint is None or effective is None:
        return ()
    return check_claims(per_weighting=per_weighting, joint=joint, effective=effective)


def _fit_warnings(law: LawFit) -> Iterator[str]:
    """Yield the warnings of the law of the advice, and a line if its search did not converge."""
    yield from law.warnings
    if not law.converged:
        yield f"the search for the {law.law.name} law did not converge."


def _scatter_warning(law: LawFit, uncertainty: Uncertainty) -> list[str]:
    """Return a line if the losses lie farther from the law than the noise that was assumed."""
    if not isinstance(uncertainty, Perturbation) or law.scatter <= _EXCESS * uncertainty.share:
        return []
    return [
        f"the values lie {law.scatter:.1%} from the {law.law.name} law, but standard deviations assume "
        f"{uncertainty.share:.1%} noise and are too small; "
        f"`Perturbation(share={law.scatter:.2g})` would fit the data."
    ]


def _quality(table: RunTable, observations: Observations) -> pd.DataFrame:
    """Return `pair_metrics` without zero-shot rows, whose losses are far larger."""
    architecture = observations.frame["architecture"].iloc[0]
    pairs = pair_metrics(table, testset=observations.testset or None, architecture=architecture or None)
    return pairs if pairs.empty else pairs[pairs["weight"] > 0]


def _late_fall(table: RunTable, observations: Observations) -> float:
    """Return the median change over the last quarter of learning curves of four measurements or more."""
    architecture = observations.frame["architecture"].iloc[0] or None
    rows = learning_curves(
        table, metric=observations.metric, testset=observations.testset or None, architecture=architecture
    )
    changes = []
    for _, curve in rows[rows["run"].ne("") & rows["weight"].gt(0)].groupby(["run", "task"], sort=False):
        if curve["step"].nunique() >= _FEWEST_POINTS:
            end = float(curve["step"].max())
            earlier = float(np.interp(0.75 * end, curve["step"], curve["value"]))
            changes.append(1 - float(curve["value"].iloc[-1]) / earlier)
    return float(np.median(changes)) if changes else math.nan


def _if_possible(answer: Callable[[], Answer]) -> Answer | None:
    """Return an answer, or None if the table cannot give one."""
    try:
        return answer()
    except (TableError, ArgumentError):
        return None


def _testsets(
    table: RunTable, joint: LawFit, uncertainty: Uncertainty
) -> Mapping[str, EffectiveFractions] | None:
    """Return the fractions of every test set, if there are several."""
    fractions = fractions_of_testsets(
        table,
        metric=joint.observations.metric,
        architecture=joint.observations.frame["architecture"].iloc[0] or None,
        objective=joint.objective,
        uncertainty=uncertainty,
    )
    return fractions if len(fractions) > 1 else None


def _recommendation(
    observations: Observations, preference: Mapping[str, float] | None
) -> Recommendation | None:
    return recommend(observations, preference=preference) if len(observations.tasks) > 1 else None


def _has_mixtures(law: LawFit) -> bool:
    return len(law.sources) > 1 and law.law.knows_mixture


def next_model(law: LawFit) -> dict[str, Any]:
    """Return the model that advice is given for: twice the largest fitted, trained as long as the longest."""
    rows = law.rows
    largest = {"size": _SIZE_FACTOR * float(rows["size"].max()), "tokens": float(rows["tokens"].max())}
    return {name: value for name, value in largest.items() if name in law.law.predictors}
