"""Everything a report says, computed once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
from mnmt_laws.fitting.convergence import Curve, correct_convergence
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.parameters import parameter_frame
from mnmt_laws.fitting.profile import profile_intervals
from mnmt_laws.fitting.uncertainty import Perturbation, Uncertainty
from mnmt_laws.solver.objective import find_objective
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.run_record import RunRecord
from mnmt_laws.tables.source import Source, observe
from mnmt_laws.tables.table import RunTable

_EXCESS = 1.5


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The three fits of a study and what follows from them; None where a question was not asked."""

    study: str
    observations: Observations
    per_weighting: LawFit
    joint: LawFit
    capacity: LawFit
    effective: EffectiveFractions
    held_out: HeldOut
    irreducible: pd.DataFrame
    claims: tuple[Claim, ...]
    quality: pd.DataFrame
    """Loss beside each other metric of the test set, a row a (run, task) that was trained on the task."""

    records: tuple[RunRecord, ...]
    warnings: tuple[str, ...]

    comparison: Comparison | None = None
    """What the mixture acts through."""

    testsets: Mapping[str, EffectiveFractions] | None = None
    """Effective fractions of each test set."""

    more_tasks: MoreTasks | None = None
    """Models of three and more tasks, predicted from models of two."""

    curves: tuple[Curve, ...] | None = None
    """Learning curves that were fitted to correct for convergence."""

    recommendation: Recommendation | None = None
    """The mixture advised."""

    design: Design | None = None
    """Runs to train next."""

    intervals: pd.DataFrame | None = None
    """Intervals by several methods: `task`, `parameter`, `method`, `estimate`, `lower`, `upper`."""

    @property
    def fits(self) -> tuple[LawFit, LawFit, LawFit]:
        """The fits of the per-weighting, joint and capacity laws."""
        return self.per_weighting, self.joint, self.capacity

    @property
    def tasks(self) -> list[str]:
        """Fitted tasks."""
        return self.joint.tasks

    @property
    def sizes(self) -> list[float]:
        """Observed sizes, ascending."""
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
        """Run that have a value corrected for convergence."""
        frame = self.observations.frame
        return frozenset(frame.loc[corrected_rows(frame), "run"])

    @property
    def wall_seconds(self) -> float:
        """Training time of all runs together, NaN where none is recorded."""
        known = [record.wall_seconds for record in self.records if record.wall_seconds is not None]
        return math.fsum(known) if known else math.nan

    def known_limit(self, task: str) -> float:
        """The task's known irreducible loss, NaN where there is none."""
        own = self.irreducible.loc[self.irreducible["task"] == task, "true"]
        return float(own.iloc[0]) if len(own) else math.nan


def analyse(
    source: Source,
    *,
    metric: str,
    testset: str | None,
    architecture: str | None,
    horizon: float | None = None,
    objective: str,
    uncertainty: Uncertainty,
) -> Analysis:
    """Fit the three laws and derive the rest.

    Raises:
        TableError: If no law can be fitted.
    """
    correction = (
        None
        if horizon is None
        else correct_convergence(
            source.table, horizon=horizon, metric=metric, testset=testset, architecture=architecture
        )
    )
    table = source.table if correction is None else correction.table
    observations = observe(table, metric=metric, testset=testset, architecture=architecture)
    per_weighting = fit(observations, law="per-weighting", objective=objective, uncertainty=uncertainty)
    joint = fit(observations, law="joint", objective=objective, uncertainty=uncertainty)
    capacity = fit(observations, law="capacity", objective=objective, uncertainty=uncertainty)
    effective = effective_fractions(joint)
    corrections = () if correction is None else correction.warnings
    warnings = [*source.warnings, *corrections, *effective.warnings, *_scatter_warning(joint, uncertainty)]
    for fitted in (joint, capacity, per_weighting):
        warnings += fitted.warnings
        warnings += (
            [] if fitted.converged else [f"the search for the {fitted.law.name} law did not converge."]
        )
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
        **answer_questions(
            joint,
            capacity,
            Setting(table=table, observations=observations, objective=objective, uncertainty=uncertainty),
        ),
    )


def _scatter_warning(joint: LawFit, uncertainty: Uncertainty) -> list[str]:
    """A line where the losses lie farther from the law than the noise that standard deviations rest on."""
    if not isinstance(uncertainty, Perturbation) or joint.scatter <= _EXCESS * uncertainty.share:
        return []
    return [
        f"the values lie {joint.scatter:.1%} from the joint law, but standard deviations assume "
        f"{uncertainty.share:.1%} noise and are too small; --noise {joint.scatter:.2g} would fit the data."
    ]


def _quality(table: RunTable, observations: Observations) -> pd.DataFrame:
    """`pair_metrics` without zero-shot rows, whose losses are of another order, and with `corrected`."""
    pairs = pair_metrics(table, observations)
    if pairs.empty:
        return pairs
    return mark_corrected(pairs[pairs["weight"] > 0], observations.frame)


Answer = TypeVar("Answer")

_LARGER = 2.0  # times the largest size observed: where advice is asked for
_FEWEST_REFITS = 10


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How the questions are put."""

    table: RunTable
    observations: Observations
    objective: str
    uncertainty: Uncertainty


def answer_questions(joint: LawFit, capacity: LawFit, setting: Setting) -> dict[str, Any]:
    """Optional fields of an `Analysis`; None where a table cannot answer."""
    rows, objective, uncertainty = setting.observations, setting.objective, setting.uncertainty
    return {
        "comparison": _if_possible(lambda: compare(rows, objective=objective, uncertainty=uncertainty)),
        "testsets": _if_possible(lambda: _testsets(setting)),
        "more_tasks": _if_possible(
            lambda: predict_more_tasks(rows, objective=objective, uncertainty=uncertainty)
        ),
        "recommendation": _if_possible(lambda: _recommendation(capacity)),
        "design": _if_possible(lambda: _design(capacity)),
        "intervals": _intervals(joint),
    }


def _if_possible(ask: Callable[[], Answer]) -> Answer | None:
    try:
        return ask()
    except TableError:
        return None


def _testsets(setting: Setting) -> Mapping[str, EffectiveFractions] | None:
    """The fractions of every test set, where there are several."""
    found = fractions_of_testsets(
        setting.table,
        metric=setting.observations.metric,
        architecture=setting.observations.frame["architecture"].iloc[0] or None,
        objective=setting.objective,
        uncertainty=setting.uncertainty,
    )
    return found if len(found) > 1 else None


def _recommendation(capacity: LawFit) -> Recommendation | None:
    return recommend(capacity, size=_size_asked(capacity)) if _has_mixtures(capacity) else None


def _design(capacity: LawFit) -> Design | None:
    """The runs that would most narrow down the best weight at a larger size."""
    if not _has_mixtures(capacity) or capacity.draws.sizes["draw"] < _FEWEST_REFITS:
        return None
    return design(capacity, quantity=f"weight:{capacity.tasks[0]}@size={_size_asked(capacity):.6g}")


def _has_mixtures(capacity: LawFit) -> bool:
    if len(capacity.tasks) < 2:
        return False
    observed_range(capacity.observations)  # raises where no run mixes the tasks
    return True


def _size_asked(capacity: LawFit) -> float:
    return _LARGER * float(capacity.observations.frame["size"].max())


def _intervals(joint: LawFit) -> pd.DataFrame | None:
    """α and L∞ of the joint law with their intervals by refits and by profile likelihood."""
    rows = parameter_frame(joint)
    rows = rows[rows["name"].isin(["alpha", "l_inf"])]
    refits = rows.assign(parameter=rows["name"], method="refits", estimate=rows["value"])
    columns = ["task", "parameter", "method", "estimate", "lower", "upper"]
    if not find_objective(joint.objective).squared:
        return refits[columns]
    profiled = profile_intervals(joint)
    ends = [
        profiled[name].sel(task=task).to_numpy()
        for task, name in zip(rows["task"], rows["name"], strict=True)
    ]
    profile = refits.assign(method="profile", lower=[end[0] for end in ends], upper=[end[1] for end in ends])
    both = pd.concat([refits, profile]) if joint.draws.sizes["draw"] else profile
    return both[columns].reset_index(drop=True)
