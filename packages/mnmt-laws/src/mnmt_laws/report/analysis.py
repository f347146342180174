"""Everything that a report says, computed once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

from mnmt_laws.answers.claims import Claim, check_claims
from mnmt_laws.answers.comparison import Comparison, compare
from mnmt_laws.answers.fractions import EffectiveFractions, effective_fractions, fractions_of_testsets
from mnmt_laws.answers.frontier import observed_range
from mnmt_laws.answers.next_runs import Design, design
from mnmt_laws.answers.predictions import (
    HeldOut,
    MoreTasks,
    compare_irreducible,
    predict_held_out,
    predict_more_tasks,
)
from mnmt_laws.answers.quality import pair_metrics
from mnmt_laws.answers.recommendation import Recommendation, recommend
from mnmt_laws.errors import TableError
from mnmt_laws.figures.points import corrected_rows, mark_corrected
from mnmt_laws.fitting.convergence import correct_convergence
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.learning_curve import Curve
from mnmt_laws.fitting.parameters import parameter_frame
from mnmt_laws.fitting.profile import profile_intervals
from mnmt_laws.fitting.uncertainty import Perturbation, ResidualBootstrap, Uncertainty
from mnmt_laws.laws import LawName
from mnmt_laws.solver.objective import find_objective
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.run_record import RunRecord
from mnmt_laws.tables.source import Source, observe
from mnmt_laws.tables.table import RunTable

Answer = TypeVar("Answer")
Progress = Callable[[str], None]
"""Is called with the name of each stage as it begins."""


def no_progress(stage: str) -> None:
    """Say nothing."""


_LAWS: tuple[LawName, ...] = ("per-weighting", "joint", "capacity")
_EXCESS = 1.5  # times the stated noise: scatter beyond it is reported
_SIZE_FACTOR = 2.0  # times the largest size observed: where a mixture and runs are recommended
_MIN_REFITS = 10


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The three fits of a study and what follows from them; None where the table cannot answer a question."""

    study: str
    """The name of the study; empty without run records."""

    observations: Observations
    """What the laws are fitted to."""

    per_weighting: LawFit
    """The law of each weight alone."""

    joint: LawFit
    """The law with one exponent and one limit for all weights."""

    capacity: LawFit
    """The law that predicts any weight."""

    effective: EffectiveFractions
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
    """What was left out, and what the data do not determine."""

    comparison: Comparison | None = None
    """The rival laws: which parameter the mixture acts through."""

    testsets: Mapping[str, EffectiveFractions] | None = None
    """Effective fractions of each test set."""

    more_tasks: MoreTasks | None = None
    """Predictions of models of three and more tasks."""

    curves: tuple[Curve, ...] | None = None
    """The learning curves that were fitted to correct for convergence."""

    recommendation: Recommendation | None = None
    """The recommended mixture at twice the largest size."""

    design: Design | None = None
    """The runs to train next."""

    intervals: pd.DataFrame | None = None
    """Intervals by several methods: `task`, `parameter`, `method`, `estimate`, `lower`, `upper`."""

    @property
    def fits(self) -> tuple[LawFit, LawFit, LawFit]:
        """The fits of the per-weighting, joint and capacity laws."""
        return self.per_weighting, self.joint, self.capacity

    @property
    def tasks(self) -> list[str]:
        """The fitted tasks."""
        return self.joint.tasks

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
    def corrected_runs(self) -> frozenset[str]:
        """The runs with a value that was corrected for convergence."""
        frame = self.observations.frame
        return frozenset(frame.loc[corrected_rows(frame), "run"])

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
    source: Source,
    *,
    metric: str | None,
    testset: str | None,
    architecture: str | None,
    horizon: float | None = None,
    objective: str,
    uncertainty: Uncertainty,
    fast: bool = False,
    progress: Progress = no_progress,
) -> Analysis:
    """Fit the three laws and answer every question that the table can answer.

    Args:
        source: The run table.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.
        horizon: As in `build_report`.
        objective: As in `fit`.
        uncertainty: As in `fit`.
        fast: Whether to leave out what takes long: refits, rival laws, and intervals by other methods.
        progress: Called with the name of each stage as it begins.

    Raises:
        TableError: If no law can be fitted.
    """
    if fast:
        uncertainty = ResidualBootstrap(refits=0)
    progress("read the table")
    correction = (
        None
        if horizon is None
        else correct_convergence(
            source.table, horizon=horizon, metric=metric, testset=testset, architecture=architecture
        )
    )
    table = source.table if correction is None else correction.table
    observations = observe(table, metric=metric, testset=testset, architecture=architecture)
    progress("fit the laws")
    per_weighting, joint, capacity = (
        fit(observations, law=law, objective=objective, uncertainty=uncertainty) for law in _LAWS
    )
    progress("answer the questions")
    effective = effective_fractions(joint)
    warnings = [
        *source.warnings,
        *(() if correction is None else correction.warnings),
        *effective.warnings,
        *_scatter_warning(joint, uncertainty),
        *_fit_warnings(joint, capacity, per_weighting),
    ]
    return Analysis(
        study=next((record.study for record in source.records if record.study), ""),
        observations=observations,
        per_weighting=per_weighting,
        joint=joint,
        capacity=capacity,
        effective=effective,
        held_out=predict_held_out(capacity=capacity, joint=joint),
        irreducible=compare_irreducible(joint),
        claims=check_claims(per_weighting=per_weighting, joint=joint, effective=effective),
        quality=_quality(table, observations),
        records=source.records,
        warnings=tuple(dict.fromkeys(warnings)),
        curves=None if correction is None else correction.curves,
        recommendation=_if_possible(lambda: _recommendation(capacity)),
        design=_if_possible(lambda: _design(capacity)),
        **({} if fast else _slow_answers(table, joint, uncertainty, progress)),
    )


def _slow_answers(
    table: RunTable, joint: LawFit, uncertainty: Uncertainty, progress: Progress
) -> dict[str, Any]:
    """Return the answers that need more fits, by their names in `Analysis`."""
    observations, objective = joint.observations, joint.objective
    progress("compare rival laws")
    comparison = _if_possible(lambda: compare(observations, objective=objective, uncertainty=uncertainty))
    progress("measure intervals by other methods")
    return {
        "comparison": comparison,
        "testsets": _if_possible(lambda: _testsets(table, joint, uncertainty)),
        "more_tasks": _if_possible(
            lambda: predict_more_tasks(observations, objective=objective, uncertainty=uncertainty)
        ),
        "intervals": _intervals(joint),
    }


def _fit_warnings(*fits: LawFit) -> Iterator[str]:
    """Yield the warnings of each fit, and a line for each search that did not converge."""
    for fitted in fits:
        yield from fitted.warnings
        if not fitted.converged:
            yield f"the search for the {fitted.law.name} law did not converge."


def _scatter_warning(joint: LawFit, uncertainty: Uncertainty) -> list[str]:
    """Return a line if the losses lie farther from the law than the noise that was assumed."""
    if not isinstance(uncertainty, Perturbation) or joint.scatter <= _EXCESS * uncertainty.share:
        return []
    return [
        f"the values lie {joint.scatter:.1%} from the joint law, but standard deviations assume "
        f"{uncertainty.share:.1%} noise and are too small; --noise {joint.scatter:.2g} would fit the data."
    ]


def _quality(table: RunTable, observations: Observations) -> pd.DataFrame:
    """Return `pair_metrics` and `corrected`, without zero-shot rows: their losses are far larger."""
    architecture = observations.frame["architecture"].iloc[0]
    pairs = pair_metrics(table, testset=observations.testset or None, architecture=architecture or None)
    if pairs.empty:
        return pairs
    return mark_corrected(pairs[pairs["weight"] > 0], observations.frame)


def _if_possible(answer: Callable[[], Answer]) -> Answer | None:
    """Return an answer, or None if the table cannot give one."""
    try:
        return answer()
    except TableError:
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


def _recommendation(capacity: LawFit) -> Recommendation | None:
    return recommend(capacity, size=_next_size(capacity)) if _has_mixtures(capacity) else None


def _design(capacity: LawFit) -> Design | None:
    """Return the runs that would most narrow down the best weight at a larger size."""
    if not _has_mixtures(capacity) or capacity.draws.sizes["draw"] < _MIN_REFITS:
        return None
    return design(capacity, quantity=f"weight:{capacity.tasks[0]}@size={_next_size(capacity):.6g}")


def _has_mixtures(capacity: LawFit) -> bool:
    if len(capacity.tasks) < 2:
        return False
    observed_range(capacity.observations)  # raises where no run mixes the tasks
    return True


def _next_size(capacity: LawFit) -> float:
    return _SIZE_FACTOR * float(capacity.observations.frame["size"].max())


def _intervals(joint: LawFit) -> pd.DataFrame | None:
    """Return α and L∞ of the joint law with their intervals by refits and by profile likelihood."""
    rows = parameter_frame(joint)
    rows = rows[rows["name"].isin(["alpha", "l_inf"])]
    refits = rows.assign(parameter=rows["name"], method="refits", estimate=rows["value"])
    columns = ["task", "parameter", "method", "estimate", "lower", "upper"]
    if not find_objective(joint.objective).squared:
        return refits[columns]
    intervals = profile_intervals(joint)
    ends = [
        intervals[name].sel(task=task).to_numpy()
        for task, name in zip(rows["task"], rows["name"], strict=True)
    ]
    profile = refits.assign(method="profile", lower=[end[0] for end in ends], upper=[end[1] for end in ends])
    both = pd.concat([refits, profile]) if joint.draws.sizes["draw"] else profile
    return both[columns].reset_index(drop=True)
