"""Everything a report says, computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from mnmt_laws.claims import Claim, check_claims
from mnmt_laws.effective import EffectiveFractions, effective_fractions
from mnmt_laws.fit import fit
from mnmt_laws.heldout import HeldOut, compare_irreducible, predict_held_out
from mnmt_laws.observations import Observations, select
from mnmt_laws.record import RunRecord
from mnmt_laws.results import LawFit
from mnmt_laws.source import Source
from mnmt_laws.uncertainty import Perturbation

_EXCESS = 1.5
_PAIRING = ["run", "size", "task", "weight", "mixture", "seed"]


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The three fits of a study and what follows from them."""

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
    """Loss beside each other metric of the test set, a row a (run, task)."""

    records: tuple[RunRecord, ...]
    warnings: tuple[str, ...]

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
        mixed = self.observations.frame["weight"].between(0, 1, inclusive="neither")
        return len(self.tasks) == 2 and bool(mixed.any())

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
    objective: str,
    perturbation: Perturbation,
) -> Analysis:
    """Fit the three laws and derive the rest.

    Raises:
        TableError: If no law can be fitted.
    """
    observations = select(source.table, metric=metric, testset=testset, architecture=architecture)
    per_weighting = fit(observations, law="per-weighting", objective=objective, uncertainty=perturbation)
    joint = fit(observations, law="joint", objective=objective, uncertainty=perturbation)
    capacity = fit(observations, law="capacity", objective=objective, uncertainty=perturbation)
    effective = effective_fractions(joint)
    warnings = [*source.warnings, *effective.warnings, *_scatter_warning(joint, perturbation)]
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
        quality=_quality(source, observations),
        records=source.records,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _scatter_warning(joint: LawFit, perturbation: Perturbation) -> list[str]:
    """A line where the losses lie farther from the law than the noise that standard deviations rest on."""
    if joint.scatter <= _EXCESS * perturbation.share:
        return []
    return [
        f"the values lie {joint.scatter:.1%} from the joint law, but standard deviations assume "
        f"{perturbation.share:.1%} noise and are too small; --noise {joint.scatter:.2g} would fit the data."
    ]


def _quality(source: Source, observations: Observations) -> pd.DataFrame:
    """Loss and every other metric of the same runs; empty where there is only one metric."""
    frame = source.table.frame
    chosen = observations.frame["architecture"].iloc[0]
    here = frame[frame["testset"].eq(observations.testset) & frame["architecture"].eq(chosen)]
    metrics = sorted(here["metric"].unique())
    if "loss" not in metrics or len(metrics) < 2:
        return pd.DataFrame(columns=["task", "loss"])
    parts = [
        select(source.table, metric=metric, testset=observations.testset, architecture=chosen)
        .frame.set_index(_PAIRING)["value"]
        .rename(metric)
        for metric in metrics
    ]
    return pd.concat(parts, axis=1).reset_index().dropna(subset=["loss"])
