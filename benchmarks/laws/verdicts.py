"""How often `compare` decides, and how often for the wrong law, on tables simulated from each rival.

Claim: of tables made by one of the rival laws, at most one in ten is decided for another. No peer: the
truth is known. Cited in docs/laws/uncertainty.md.

Tables have two tasks whose errors in one run correlate as stated, 5 sizes and 5 weights. In each, the mixture
moves one parameter: β by p^-0.3, L∞ by 0.15 (1 - p), or α by 0.02 log p.

    python -m benchmarks.laws.verdicts --out benchmarks/results/laws/verdicts.json
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, Numbers, Out, print_table, provenance, run, write_report
from mnmt_laws import compare
from mnmt_laws.answers.comparison import RIVALS
from mnmt_laws.forecasts.rivals import story_of

SIZES, WEIGHTS = np.geomspace(1e6, 1e8, 5), (0.1, 0.3, 0.5, 0.7, 0.9)
TASKS = ("en-de", "en-fr")


def main(
    *,
    tables: int = 40,
    noise: Numbers = (0.003, 0.01, 0.03),
    correlation: float = 0.5,
    simulated: int = 100,
    out: Out = None,
) -> None:
    """Print the share of tables that are decided, rightly and wrongly.

    Args:
        tables: Tables for each law and noise.
        noise: Relative standard deviations of the losses.
        correlation: Correlation of the errors of the two tasks of a run.
        simulated: Tables that `compare` simulates for each rival.
        out: JSON file for the figures.
    """
    rows: list[Figures] = []
    for deviation, law in product(noise, list(RIVALS)[:3]):
        start = time.perf_counter()
        best = [verdict(law, seed, deviation, correlation, simulated) for seed in range(tables)]
        checked, unchecked = ([name for name, _ in best], [name for _, name in best])
        rows.append(
            {
                "truth": RIVALS[law],
                "noise": f"{deviation:.1%}",
                "right": share(checked, law, right=True),
                "wrong": share(checked, law, right=False),
                "right by ΔBIC > 2 alone": share(unchecked, law, right=True),
                "wrong by ΔBIC > 2 alone": share(unchecked, law, right=False),
            }
        )
        print(rows[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
        figures = {"tables": tables, "correlation": correlation, "simulated": simulated, "verdicts": rows}
        write_report(out, "verdicts of compare", figures, provenance("mnmt-laws", "numpy", "scipy"))
    print_table(rows)


def share(best: list[str], law: str, *, right: bool) -> str:
    """Return the share of verdicts for the law that made the tables, or for another."""
    return f"{np.mean([bool(name) and (name == RIVALS[law]) == right for name in best]):.0%}"  # type: ignore[index]


def verdict(law: str, seed: int, noise: float, correlation: float, simulated: int) -> tuple[str, str]:
    """Return what varies by the verdict, and by a plain difference in summed BIC; empty if undecided."""
    table = table_of(law, seed, noise, correlation)
    result = compare(table, laws=list(RIVALS), left_out=False, tables=simulated)
    bic = result.table.groupby("law")["bic"].sum().sort_values()
    plain = str(bic.index[0]) if bic.iloc[1] - bic.iloc[0] > 2 else ""
    return (*(story_of(name) if name else "" for name in (result.best, plain)),)  # type: ignore[return-value]


def table_of(law: str, seed: int, noise: float, correlation: float) -> pd.DataFrame:
    """Return a table of two tasks in which the mixture moves one parameter."""
    rng = np.random.default_rng(seed)
    rows = []
    for size, weight in product(SIZES, WEIGHTS):
        shared = rng.standard_normal()
        for task, p in zip(TASKS, (weight, 1 - weight), strict=True):
            beta = p**-0.3 if law == "joint" else 1.0
            limit = 0.8 + (0.15 * (1 - p) if law == "limit-varies" else 0.0)
            alpha = 0.35 + (0.02 * np.log(p) if law == "exponent-varies" else 0.0)
            error = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.standard_normal()
            value = (beta * SIZES[0] ** 0.35 * size**-alpha + limit) * np.exp(noise * error)
            rows.append(
                {"run": f"{size:g}-{weight:g}", "size": size, "task": task, "weight": p, "metric": "loss",
                 "value": value, "mixture": f"en-de:{weight},en-fr:{1 - weight}"}
            )  # fmt: skip
    return pd.DataFrame(rows)


if __name__ == "__main__":
    run(main, smoke={"tables": 1, "noise": (0.01,), "simulated": 5})
