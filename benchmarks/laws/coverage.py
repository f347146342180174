"""How often 95% intervals of the laws hold the truth, by method, on simulated tables of the papers' shape.

Two tasks, the eight sizes of Fernandes et al. 2023 (Table A), eight weights a task, losses that obey the
capacity law times Gaussian noise. A method that is honest covers 95% at any noise.

    python -m benchmarks.laws.coverage --tables 400 --out benchmarks/results/laws/coverage.json
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import xarray as xr

from mnmt_laws import (
    ClusterBootstrap,
    LawFit,
    Observations,
    Perturbation,
    ResidualBootstrap,
    TaskLaw,
    effective_fractions,
    fit,
    observe,
    profile_intervals,
    simulate,
)

SIZES = (18881024, 63714816, 127427328, 191139840, 339787776, 453049344, 707869184, 1019312128)
WEIGHTS = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)
LAWS = {
    "en-de": TaskLaw(alpha=0.42, beta=1300, l_inf=0.85, c1=0.18, c2=0.55, c3=1.1),
    "en-zh": TaskLaw(alpha=0.35, beta=520, l_inf=1.1, c1=0.12, c2=0.5, c3=1.3),
}
METHODS = (ResidualBootstrap, ClusterBootstrap, Perturbation)
LARGER, UNSEEN = 4e9, 0.2
Interval = tuple[float, float]


def main() -> None:
    """Simulate, fit, count, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.003, 0.01, 0.03])
    parser.add_argument("--refits", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = []
    for noise in arguments.noise:
        started = time.perf_counter()
        with ProcessPoolExecutor(arguments.processes) as pool:
            counted = pool.map(partial(study, noise=noise, refits=arguments.refits), range(arguments.tables))
            held = summarise(list(counted))
        results += [{"noise": noise, **row} for row in held]
        print_table(noise, held, time.perf_counter() - started)
    if arguments.out:
        document = {
            "software": f"mnmt-laws {version('mnmt-laws')}",
            "tables": arguments.tables,
            "refits": arguments.refits,
            "results": results,
        }
        arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def study(seed: int, *, noise: float, refits: int) -> list[tuple[str, str, str, bool, float]]:
    """(law, method, quantity, whether its interval holds the truth, width) of one simulated table."""
    table = simulate(LAWS, sizes=SIZES, weights=(*WEIGHTS, 0.0), noise=noise, seed=seed)
    observations = observe(table)
    rows = []
    for law in ("per-weighting", "joint", "capacity"):
        for method, quantity, truth, (low, high) in intervals(observations, law, seed, refits):
            rows.append((law, method, quantity, bool(low <= truth <= high), high - low))
    return rows


def intervals(
    observations: Observations, law: str, seed: int, refits: int
) -> Iterator[tuple[str, str, float, Interval]]:
    """Every interval of one law, with its method, its quantity and the truth."""
    for method in METHODS:
        fitted = fit(observations, law=law, uncertainty=method(refits=refits, seed=seed))
        for quantity, truth, interval in _parameters(fitted.interval(), law):
            yield method.name, quantity, truth, interval
        for quantity, truth, interval in _derived(fitted):
            yield method.name, quantity, truth, interval
    for quantity, truth, interval in _parameters(profile_intervals(fitted), law):
        yield "profile", quantity, truth, interval


def _parameters(found: xr.Dataset, law: str) -> Iterator[tuple[str, float, Interval]]:
    names = ("alpha", "l_inf", "c1", "c2", "c3") if law == "capacity" else ("alpha", "l_inf")
    for task, truth in LAWS.items():
        for name in names:
            own = found[name].sel(task=task)
            own = own.sel(weight=0.3, method="nearest") if "weight" in own.dims else own
            yield name, getattr(truth, name), (float(own.sel(bound="lower")), float(own.sel(bound="upper")))


def _derived(fitted: LawFit) -> Iterator[tuple[str, float, Interval]]:
    """Fractions, and losses beyond the sizes and between the weights that were seen."""
    for task, truth in LAWS.items():
        weight = UNSEEN if fitted.law.name == "capacity" else 0.3
        draws = fitted.predict(draws=True, size=LARGER, task=task, weight=weight)
        yield f"loss at {LARGER:.0e}", truth.loss(LARGER, weight), tuple(np.quantile(draws, [0.025, 0.975]))
        if fitted.law.name == "joint":
            own = effective_fractions(fitted).fractions.interval.sel(task=task, weight=0.1)
            share = 0.1 + truth.c1 * 0.1**truth.c2 * 0.9**truth.c3
            yield "f(0.1)", share, (float(own.sel(bound="lower")), float(own.sel(bound="upper")))


def summarise(studies: list[list[tuple[str, str, str, bool, float]]]) -> list[dict[str, object]]:
    """Share of intervals that hold the truth, and their median width, by law, quantity and method."""
    found: dict[tuple[str, str, str], list[tuple[bool, float]]] = defaultdict(list)
    for law, method, quantity, holds, width in (row for rows in studies for row in rows):
        found[law, quantity, method].append((holds, width))
    return [
        {
            "law": law,
            "quantity": quantity,
            "method": method,
            "coverage": float(np.mean([holds for holds, _ in seen])),
            "width": float(np.median([width for _, width in seen])),
            "count": len(seen),
        }
        for (law, quantity, method), seen in found.items()
    ]


def print_table(noise: float, rows: list[dict[str, object]], seconds: float) -> None:
    """Coverage as a table, a column a method."""
    methods = list(dict.fromkeys(str(row["method"]) for row in rows))
    print(f"\n### noise {noise:.1%} ({seconds:.0f} s)\n")
    print("| law | quantity | " + " | ".join(methods) + " |")
    print("|--|--|" + "--|" * len(methods))
    for law, quantity in dict.fromkeys((row["law"], row["quantity"]) for row in rows):
        own = {row["method"]: row for row in rows if (row["law"], row["quantity"]) == (law, quantity)}
        cells = [f"{own[m]['coverage']:.1%}" if m in own else "" for m in methods]
        print(f"| {law} | {quantity} | " + " | ".join(cells) + " |")
    print(
        f"\nstandard error of each share: at most {100 * math.sqrt(0.25 / int(rows[0]['count'])):.1f} points",
        flush=True,
    )


if __name__ == "__main__":
    main()
