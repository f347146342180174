"""Transfer without a law: a task beside others against the task alone, read as often."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.back_test import ROUNDING
from mnmt_laws.tables.lengths import typical_lengths
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource, observe

TOLERANCE = 0.1
"""Relative difference up to which two exposures count as equal."""

_MODEL = ["task", "weight", "mixture", "length"]


@dataclass(frozen=True, kw_only=True)
class EqualExposure:
    """Losses of models that share a task, less those of models of the task alone that read it as often."""

    means: pd.DataFrame
    """A row for each task, mixture and length: `task`, `weight`, `mixture`, `length` and `length_alone` (in
    `unit`), `difference` (mean over sizes, in the unit of the metric), `std` (its standard error) and `over`
    (`seeds` or `sizes`, whose scatter that is), and how many `sizes`."""

    by_size: pd.DataFrame
    """The same for each `size`: `mixed` and `alone` (means over seeds), their `difference`, and how many
    `seeds` both have at least."""

    unit: str
    """The unit of lengths, `tokens` or `steps`."""

    def describe(self) -> str:
        """Return each task's difference over most sizes after the longest training; empty without rows."""
        rows = self.means.sort_values(["sizes", "length"], kind="stable").groupby("task").tail(1)
        parts = [
            f"{row['task']} {row['difference']:+.3f} ± {row['std']:.3f} (p = {row['weight']:g}, "
            f"{row['length']:.3g} {self.unit})"
            for row in rows.sort_values("task").to_dict("records")
        ]
        if not parts:
            return ""
        return (
            "At equal exposure, beside other tasks less alone, mean over sizes (below 0 the others help): "
            f"{', '.join(parts)}."
        )


def transfer_at_equal_exposure(
    source: TableSource | Observations,
    *,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
) -> EqualExposure:
    """Compare each task at weight p < 1 and length D with the task alone at a length near p D.

    Runs are compared size by size, held-out ones too, and no law is fitted. Where several lengths alone are
    within 10% of p D, the nearest is taken.

    The standard error is that of the mean over the sizes that were trained: from the scatter of seeds within
    a size, or, where no size has two seeds of both models, from that of the differences over sizes.

    Args:
        source: Path of a run table or of a folder of run records, or a frame, a run table or observations,
            read as by `observe`.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.

    Returns:
        The differences; without rows if nothing was trained so.

    Raises:
        TableError: If the source cannot be read, or a choice must be made.
        ArgumentError: If the table has no lengths of training.
    """
    observations = observe(source, metric=metric, testset=testset, architecture=architecture)
    column = observations.lengths.column
    if not column:
        raise ArgumentError("`source` must have `tokens` or `step`, to tell which exposures are equal.")
    rows = observations.frame[observations.frame["weight"] > 0]
    lengths = typical_lengths(rows[column].to_numpy(float), rounding=ROUNDING)
    pairs = [pair for _, part in rows.assign(length=lengths).groupby("task") for pair in _pairs(part)]
    columns = [*_MODEL, "length_alone", "size"]
    by_size = pd.DataFrame(pairs, columns=[*columns, "mixed", "alone", "difference", "variance", "seeds"])
    groups = by_size.groupby([*_MODEL, "length_alone"], sort=True)
    means = pd.DataFrame([_mean(key, part) for key, part in groups], columns=_MEANS)
    return EqualExposure(
        means=means, by_size=by_size.drop(columns="variance"), unit=observations.lengths.unit
    )


_MEANS = [*_MODEL, "length_alone", "difference", "std", "over", "sizes"]


def _pairs(rows: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """Yield the losses of one task beside others and alone, for each model and size that has both."""
    alone = _cells(rows[rows["weight"] == 1])
    lengths = alone["length"].unique()
    for _, mixed in _cells(rows[rows["weight"] < 1]).groupby(["weight", "mixture", "length"]):
        first = mixed.iloc[0]
        other = _nearest(first["weight"] * first["length"], lengths, below=first["length"])
        both = mixed.merge(alone[alone["length"] == other], on="size", suffixes=("", "_alone"))
        for cell in both.to_dict("records"):
            yield (
                *(cell[name] for name in _MODEL), other, cell["size"],
                cell["mean"], cell["mean_alone"], cell["mean"] - cell["mean_alone"],
                cell["var"] / cell["count"] + cell["var_alone"] / cell["count_alone"],
                min(cell["count"], cell["count_alone"]),
            )  # fmt: skip


def _cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean, variance and number of the values of each model at each size."""
    return rows.groupby([*_MODEL, "size"])["value"].agg(["mean", "var", "count"]).reset_index()


def _nearest(exposure: float, lengths: Array, *, below: float) -> float:
    """Return the length nearest to an exposure, NaN if none below another is within the tolerance."""
    distances = np.where(lengths < below, np.abs(np.log(lengths / exposure)), math.inf)
    best = int(np.argmin(distances)) if len(distances) else -1
    return float(lengths[best]) if best >= 0 and distances[best] <= math.log1p(TOLERANCE) else math.nan


def _mean(key: tuple[object, ...], part: pd.DataFrame) -> tuple[object, ...]:
    """Return the mean difference over sizes with its standard error."""
    count, known = len(part), part["variance"].dropna()
    if len(known):
        return *key, part["difference"].mean(), math.sqrt(known.mean() / count), "seeds", count
    return *key, part["difference"].mean(), part["difference"].std() / math.sqrt(count), "sizes", count
