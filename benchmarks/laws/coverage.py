"""Coverage of the laws' 95% intervals, by method, on simulated tables of the paper's shape.

Claim: which methods of uncertainty are honest. A method that is honest covers 95% at any noise. No peer.
Cited in docs/laws/uncertainty.md.

The tables have two tasks, the eight sizes of Fernandes et al. 2023 (Table A), eight weights a task, and
losses that obey the capacity law times Gaussian noise.

    python -m benchmarks.laws.coverage --tables 400 --out benchmarks/results/laws/coverage.json
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from benchmarks.measurement import Figures, Numbers, Out, print_table, provenance, run, write_report
from mnmt_laws import (
    ClusterBootstrap,
    KnownLaw,
    LawFit,
    Observations,
    Perturbation,
    ResidualBootstrap,
    effective_fractions,
    fit,
    observe,
    simulate,
)
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.laws import LawName

SIZES = (18881024, 63714816, 127427328, 191139840, 339787776, 453049344, 707869184, 1019312128)
WEIGHTS = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)
LAWS = {
    "en-de": KnownLaw.capacity(alpha=0.42, beta=1300, l_inf=0.85, c1=0.18, c2=0.55, c3=1.1),
    "en-zh": KnownLaw.capacity(alpha=0.35, beta=520, l_inf=1.1, c1=0.12, c2=0.5, c3=1.3),
}
FITTED: tuple[LawName, ...] = ("per-weighting", "joint", "capacity")
METHODS: dict[str, type[ResidualBootstrap | ClusterBootstrap | Perturbation]] = {
    "residual": ResidualBootstrap,
    "cluster": ClusterBootstrap,
    "perturbation": Perturbation,
}
LARGER, UNSEEN = 4e9, 0.2
Interval = tuple[float, float]


def main(
    *,
    tables: int = 100,
    noise: Numbers = (0.003, 0.01, 0.03),
    refits: int = 200,
    jobs: int = 2,
    out: Out = None,
) -> None:
    """Print a table of coverage for each noise.

    Args:
        tables: Number of simulated tables.
        noise: Relative standard deviations of the losses.
        refits: Refits of each bootstrap.
        jobs: Processes at a time.
        out: JSON file for the figures.
    """
    results = []
    for deviation in noise:
        start = time.perf_counter()
        with ProcessPoolExecutor(jobs) as pool:
            studies = pool.map(partial(study, noise=deviation, refits=refits), range(tables))
            rows = summarise(list(studies))
        results += [{"noise": deviation, **row} for row in rows]
        print(f"\n### noise {deviation:.1%} ({time.perf_counter() - start:.0f} s)\n")
        print_coverage(rows)
    figures = {"tables": tables, "refits": refits, "results": results}
    write_report(out, "coverage of 95% intervals", figures, provenance("mnmt-laws", "numpy", "scipy"))


def study(seed: int, *, noise: float, refits: int) -> list[tuple[str, str, str, bool, float]]:
    """Return (law, method, quantity, whether its interval holds the truth, width) of a table."""
    table = simulate(LAWS, sizes=SIZES, weights=(*WEIGHTS, 0.0), noise=noise, seed=seed)
    observations = observe(table)
    rows: list[tuple[str, str, str, bool, float]] = []
    for law in FITTED:
        for method, quantity, truth, (low, high) in intervals(observations, law, seed, refits):
            rows.append((law, method, quantity, bool(low <= truth <= high), high - low))
    return rows


def intervals(
    observations: Observations, law: LawName, seed: int, refits: int
) -> Iterator[tuple[str, str, float, Interval]]:
    """Yield every interval of one law, with its method, its quantity and the truth."""
    for name, method in METHODS.items():
        fitted = fit(
            observations, law=law, uncertainty=method(refits=refits, seed=seed), irreducible="ignore"
        )
        for quantity, truth, interval in _parameters(fitted.interval(), law):
            yield name, quantity, truth, interval
        for quantity, truth, interval in _derived(fitted):
            yield name, quantity, truth, interval


def _parameters(fitted: xr.Dataset, law: str) -> Iterator[tuple[str, float, Interval]]:
    names = ("alpha", "l_inf", "c1", "c2", "c3") if law == "capacity" else ("alpha", "l_inf")
    for task, truth in LAWS.items():
        for name in names:
            values = fitted[name].sel(task=task)
            values = values.sel(weight=0.3, method="nearest") if "weight" in values.dims else values
            yield name, truth.parameters[name], bounds(values)


def _derived(fitted: LawFit) -> Iterator[tuple[str, float, Interval]]:
    """Yield fractions, and losses beyond the sizes and between the weights of the table."""
    for task, truth in LAWS.items():
        weight = UNSEEN if fitted.law.name == "capacity" else 0.3
        draws = fitted.predict(draws=True, size=LARGER, task=task, weight=weight)
        yield (
            f"loss at {LARGER:.0e}",
            float(truth.losses({"size": np.array([LARGER]), "weight": np.array([weight])})[0]),
            _ends(draws),
        )
        if fitted.law.name == "joint":
            fraction = effective_fractions(fitted).fractions.interval.sel(task=task, weight=0.1)
            yield "f(0.1)", _share(truth, 0.1), bounds(fraction)


def _share(law: KnownLaw, weight: float) -> float:
    """Return f̂ of a law of two tasks."""
    c1, c2, c3 = (law.parameters[name] for name in ("c1", "c2", "c3"))
    return float(weight + c1 * weight**c2 * (1 - weight) ** c3)


def _ends(draws: NDArray[np.float64]) -> Interval:
    low, high = bounds_of(draws)
    return float(low), float(high)


def bounds(values: xr.DataArray) -> Interval:
    """Return the ends of an interval."""
    return float(values.sel(bound="lower")), float(values.sel(bound="upper"))


def summarise(studies: list[list[tuple[str, str, str, bool, float]]]) -> list[Figures]:
    """Return the coverage and the median width of intervals, by law, quantity and method."""
    intervals_of: dict[tuple[str, str, str], list[tuple[bool, float]]] = defaultdict(list)
    for law, method, quantity, holds, width in (row for table in studies for row in table):
        intervals_of[law, quantity, method].append((holds, width))
    return [
        {
            "law": law,
            "quantity": quantity,
            "method": method,
            "coverage": float(np.mean([holds for holds, _ in rows])),
            "width": float(np.median([width for _, width in rows])),
            "count": len(rows),
        }
        for (law, quantity, method), rows in intervals_of.items()
    ]


def print_coverage(rows: list[Figures]) -> None:
    """Print coverage as a table with a column for each method."""
    cells: dict[tuple[str, str], Figures] = {}
    for row in rows:
        key = row["law"], row["quantity"]
        cells.setdefault(key, {"law": row["law"], "quantity": row["quantity"]})
        cells[key][row["method"]] = f"{row['coverage']:.1%}"
    print_table(list(cells.values()))
    error = 100 * math.sqrt(0.25 / rows[0]["count"])
    print(f"standard error of each share: at most {error:.1f} points", flush=True)


if __name__ == "__main__":
    run(main, smoke={"tables": 1, "noise": (0.01,), "refits": 3, "jobs": 1})
