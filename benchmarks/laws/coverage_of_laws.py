"""Coverage of the 95% intervals of every law, on tables simulated from it.

Claim: the residual bootstrap's intervals of what a law predicts hold the truth about 95 times in 100,
whatever the law. No peer: the truth is known. Cited in docs/laws/uncertainty.md.

A law's interval at each row of its table counts once; rows of a table are alike, so the standard error is
that of the tables' shares. The quantiles of few refits are those of rank (n + 1) q, whose interval would hold
95% at any number of refits; those of rank 1 + (n - 1) q hold 93.1% at 100, 94.1% at 200.

    python -m benchmarks.laws.coverage_of_laws --out benchmarks/results/laws/coverage_of_laws.json
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.laws.recovery import TASKS, WEIGHTS, anchored, table_of
from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from mnmt_laws import ResidualBootstrap, example_law, fit
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.laws import LAWS, LawName


def main(
    *, laws: Names = tuple(LAWS), tables: int = 60, noise: float = 0.01, refits: int = 100, out: Out = None
) -> None:
    """Print the coverage of every law's intervals.

    Args:
        laws: Names of the laws.
        tables: Simulated tables a law; each has parameters of its own.
        noise: Relative standard deviation of the losses.
        refits: Refits of each bootstrap.
        out: JSON file for the figures.
    """
    rows: list[Figures] = []
    for law in laws:
        start = time.perf_counter()
        shares = [
            share_held(law, seed, noise, refits)  # type: ignore[arg-type]
            for seed in range(tables)
        ]
        error = np.std(shares, ddof=1) / np.sqrt(tables) if tables > 1 else np.nan
        rows.append({"law": law, "coverage": f"{np.mean(shares):.1%}", "standard error": f"{error:.1%}"})
        print(rows[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
        figures = {"tables": tables, "noise": noise, "refits": refits, "laws": rows}
        write_report(
            out, "coverage of every law's 95% intervals", figures, provenance("mnmt-laws", "numpy", "scipy")
        )
    print_table(rows)


def share_held(law: LawName, seed: int, noise: float, refits: int) -> float:
    """Return the share of a table's rows at which the interval of the law holds the truth."""
    known = example_law(law, partners=TASKS[1:], weights=WEIGHTS, seed=seed)
    table, truth = table_of(known, noise=noise, seed=seed), table_of(known)["value"].to_numpy()
    method = ResidualBootstrap(refits=refits, seed=seed)
    fitted = fit(table, law=anchored(known), uncertainty=method, irreducible="ignore")
    low, high = bounds_of(fitted.predict(table, draws=True))
    return float(np.mean((low <= truth) & (truth <= high)))


if __name__ == "__main__":
    run(main, smoke={"laws": ("share-tied", "ye"), "tables": 1, "refits": 5})
