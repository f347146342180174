"""Architectures side by side under the law of Zhang et al. 2022: which is better at which sizes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from mnmt_laws.answers.arguments import check_number
from mnmt_laws.answers.mixtures.best_mixture import sign_of
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import Uncertainty, bounds_of
from mnmt_laws.laws.power import Zhang
from mnmt_laws.tables.observations import rows_of_metric
from mnmt_laws.tables.source import TableSource, open_source

_POINTS = 200  # sizes at which curves are compared
_UNKNOWN = (np.nan, np.nan)


@dataclass(frozen=True, kw_only=True)
class Architectures:
    """Fits of α (N_0 / N)^p + L∞ to several architectures, with one N_0."""

    fits: dict[str, LawFit]
    """The fit of each architecture."""

    predictor: str
    """`size` or `flops`."""

    n_0: float
    """N_0, parameters or FLOPs: α is the reducible loss of a model of this size, of any architecture."""

    parameters: pd.DataFrame
    """A row for each task and architecture: `alpha` (the paper's α), `exponent` (p) and `l_inf`, each with
    `_lower` and `_upper`, the ends of its 95% interval."""

    ranges: pd.DataFrame
    """A row for each task, pair and range of sizes: `better`, `worse`, `low`, `high`, and `certainty`, the
    share of refits in which the better one is better, averaged over the range."""

    crossings: pd.DataFrame
    """A row for each task and pair whose curves cross: `first` and `second`, `crossing` (the size, NaN where
    only refits cross), `lower` and `upper` (95%, of the refits that cross) and `share` of such refits."""

    def describe(self) -> list[str]:
        """Return which architecture is better where, in sentences."""
        unit = "parameters" if self.predictor == "size" else "FLOPs"
        lines = []
        for row in self.ranges.to_dict("records"):
            known = "" if np.isnan(row["certainty"]) else f" ({row['certainty']:.0%} of the refits)"
            verdict = "is better than" if not row["certainty"] < 0.95 else "may be better than"
            lines.append(
                f"{row['task']}: {row['better']} {verdict} {row['worse']} from {row['low']:.3g} to "
                f"{row['high']:.3g} {unit}{known}."
            )
        return lines


def compare_architectures(
    source: TableSource,
    *,
    predictor: Literal["size", "flops"] = "size",
    n_0: float | None = None,
    metric: str | None = None,
    testset: str | None = None,
    objective: str = "log-ols",
    uncertainty: Uncertainty | None = None,
) -> Architectures:
    """Fit L = α (N_0 / N)^p + L∞ to every architecture of a table, with one N_0 (Zhang et al. 2022, eq. 7).

    Curves are compared over the sizes that both architectures of a pair have, never beyond.

    Args:
        source: Path of a run table or of a folder of run records, or a frame or a run table.
        predictor: What stands for N: parameters (`size`) or `flops`.
        n_0: N_0, such as that of a one-layer encoder-decoder; by default the least of any architecture.
        metric: As in `observe`.
        testset: As in `observe`.
        objective: As in `fit`.
        uncertainty: As in `fit`.

    Raises:
        TableError: If the source cannot be read, names fewer than two architectures, or one cannot be fitted.
        ArgumentError: If `predictor` or `n_0` is out of range.
    """
    if predictor not in ("size", "flops"):
        raise ArgumentError(f"`predictor` must be size or flops, but is {predictor!r}.")
    table = open_source(source).table
    rows = rows_of_metric(table, metric)
    names = [str(name) for name in sorted(rows["architecture"].unique()) if name]
    if len(names) < 2:
        raise TableError(
            f"{table.source}: a comparison needs two architectures, but the column `architecture` has "
            f"{', '.join(names) or 'none'}."
        )
    least = float(rows.loc[rows["weight"] > 0, predictor].min())
    if not least > 0:
        raise TableError(f"{table.source}: has no `flops`; map a column to it, or compare by size.")
    start = check_number("n_0", least if n_0 is None else n_0)
    law = Zhang(predictor=predictor, n_0=start)
    fits = {
        name: fit(
            table, law=law, metric=metric, testset=testset, architecture=name, objective=objective,
            uncertainty=uncertainty,
        )
        for name in names
    }  # fmt: skip
    pairs = [
        (task, first, second)
        for task in sorted({task for fitted in fits.values() for task in fitted.tasks})
        for first, second in itertools.combinations(names, 2)
        if task in fits[first].tasks and task in fits[second].tasks
    ]
    curves = [_Curves.of(fits, task, first, second, predictor) for task, first, second in pairs]
    known = [line for line in curves if line is not None]
    return Architectures(
        fits=fits,
        predictor=predictor,
        n_0=start,
        parameters=_parameters(fits),
        ranges=pd.DataFrame([row for line in known for row in line.ranges()], columns=_RANGES),
        crossings=pd.DataFrame(
            [row for line in known for row in [line.crossing()] if row is not None], columns=_CROSSINGS
        ),
    )


_RANGES = ["task", "better", "worse", "low", "high", "certainty"]
_CROSSINGS = ["task", "first", "second", "crossing", "lower", "upper", "share"]


@dataclass(frozen=True, kw_only=True)
class _Curves:
    """Two architectures' curves over the sizes that both have."""

    task: str
    first: str
    second: str

    sizes: Array
    """(n,) sizes, evenly spread in log N."""

    lead: Array
    """(n,) by how much the first is better."""

    draws: Array
    """(refits, n) the same in every refit."""

    @classmethod
    def of(
        cls, fits: dict[str, LawFit], task: str, first: str, second: str, predictor: str
    ) -> _Curves | None:
        """Return the curves of a pair; None where no size lies within both."""
        spans = []
        for name in (first, second):
            rows = fits[name].rows
            observed = rows.loc[rows["task"] == task, predictor]
            spans.append((float(observed.min()), float(observed.max())))
        low, high = max(spans[0][0], spans[1][0]), min(spans[0][1], spans[1][1])
        if not low < high:
            return None
        sizes, sign = np.geomspace(low, high, _POINTS), sign_of(fits[first])
        pair = (fits[first], fits[second])
        at: dict[str, Any] = {"task": task, predictor: sizes}
        values = [fitted.predict(**at) for fitted in pair]
        draws = [fitted.predict(draws=True, **at) for fitted in pair]
        return cls(
            task=task,
            first=first,
            second=second,
            sizes=sizes,
            lead=sign * (values[1] - values[0]),
            draws=sign * (draws[1] - draws[0]),
        )

    def ranges(self) -> list[dict[str, object]]:
        """Return the ranges of sizes within which one of the two is better."""
        leads = self.lead > 0
        turns = np.flatnonzero(leads[1:] != leads[:-1])
        ends = [0, *(turns + 1), len(leads)]
        edges = [self.sizes[0], *(_zero(self.sizes, self.lead, int(turn)) for turn in turns), self.sizes[-1]]
        rows = []
        for number, (start, stop) in enumerate(itertools.pairwise(ends)):
            better, worse = (self.first, self.second) if leads[start] else (self.second, self.first)
            agree = (self.draws[:, start:stop] > 0) == leads[start]
            rows.append(
                {
                    "task": self.task,
                    "better": better,
                    "worse": worse,
                    "low": float(edges[number]),
                    "high": float(edges[number + 1]),
                    "certainty": float(agree.mean()) if agree.size else np.nan,
                }
            )
        return rows

    def crossing(self) -> dict[str, object] | None:
        """Return the first size at which the curves cross, with its interval over the refits that cross."""
        estimate = _first_zero(self.sizes, self.lead)
        crossings = np.array([_first_zero(self.sizes, lead) for lead in self.draws])
        known = crossings[np.isfinite(crossings)]
        if np.isnan(estimate) and not len(known):
            return None
        low, high = (ends[0] for ends in bounds_of(known[:, None])) if len(known) else _UNKNOWN
        return {
            "task": self.task, "first": self.first, "second": self.second, "crossing": estimate,
            "lower": float(low), "upper": float(high),
            "share": len(known) / len(crossings) if len(crossings) else np.nan,
        }  # fmt: skip


def _first_zero(sizes: Array, lead: Array) -> float:
    turns = np.flatnonzero((lead[1:] > 0) != (lead[:-1] > 0))
    return _zero(sizes, lead, int(turns[0])) if len(turns) else float("nan")


def _zero(sizes: Array, lead: Array, turn: int) -> float:
    """Return where a lead is 0 between two sizes, linearly in log N."""
    before, after = lead[turn], lead[turn + 1]
    low, high = np.log(sizes[turn]), np.log(sizes[turn + 1])
    return float(np.exp(low + (high - low) * before / (before - after)))


def _parameters(fits: dict[str, LawFit]) -> pd.DataFrame:
    names = {"alpha": "factor", "exponent": "exponent", "l_inf": "l_inf"}
    rows = []
    for architecture, fitted in fits.items():
        interval = fitted.interval()
        for task in fitted.tasks:
            row: dict[str, object] = {"task": task, "architecture": architecture}
            for name, parameter in names.items():
                row[name] = float(fitted.parameters[parameter].sel(task=task))
                low, high = interval[parameter].sel(task=task).to_numpy()
                row |= {f"{name}_lower": float(low), f"{name}_upper": float(high)}
            rows.append(row)
    return pd.DataFrame(rows).sort_values(["task", "architecture"], ignore_index=True)
