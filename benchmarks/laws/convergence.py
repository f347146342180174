"""What the correction for convergence does to learning curves whose course beyond their end is known.

Claim: it corrects trunks, leaves curves that end in a cool-down or level off alone, comes nearer to the
truth where it corrects, and its standard errors hold. Peer: leaving the loss alone.
Cited in docs/laws/mathematics.md.

Each table holds curves of several sizes that are read at a horizon beyond their ends. A trunk is a power law
with a limit; a cool-down falls by 1 to 6% below it over the last 10 to 50% of its steps; a plateau stops
learning somewhere between 60 and 110% of them and rises by up to 3% a length.

    python -m benchmarks.laws.convergence --out benchmarks/results/laws/convergence.json
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.measurement import Counts, Figures, Numbers, Out, print_table, provenance, run, write_report
from mnmt_laws import read_table
from mnmt_laws.fitting.curves.convergence import correct_convergence

KINDS = ("trunk", "cool-down", "plateau")
STEPS = 10_000


def main(
    *,
    tables: int = 12,
    curves: int = 12,
    points: Counts = (12, 40),
    noise: Numbers = (0.001, 0.004, 0.01),
    horizon: float = 2.0,
    out: Out = None,
) -> None:
    """Correct simulated tables and print a row for each kind, number of measurements and noise.

    Args:
        tables: Tables of each kind.
        curves: Learning curves of each table.
        points: Measurements of each curve.
        noise: Relative standard deviations of the measurements.
        horizon: Where the curves are read, in lengths of a curve.
        out: JSON file for the figures.
    """
    cells = [(kind, count, size) for kind in KINDS for count in points for size in noise]
    rows = [
        summary(kind, count, size, list(corrections(kind, count, size, tables, curves, horizon)))
        for kind, count, size in cells
    ]
    print_table(rows)
    figures = {"horizon": horizon, "tables": tables, "curves": curves, "results": rows}
    write_report(out, "corrections for convergence", figures, provenance("mnmt-laws", "numpy"))


def corrections(
    kind: str, points: int, noise: float, tables: int, curves: int, horizon: float
) -> Iterator[pd.DataFrame]:
    """Yield the last row of each curve of a table after the correction, with `last` and `truth`."""
    for number in range(tables):
        rng = np.random.default_rng([KINDS.index(kind), points, number])
        simulated = [curve(kind, points, noise, horizon, rng) for _ in range(curves)]
        rows = [
            frame.assign(run=f"run {place}", size=1e6 + place) for place, (frame, _) in enumerate(simulated)
        ]
        corrected = correct_convergence(read_table(pd.concat(rows)), horizon=horizon * STEPS).table.frame
        ends = corrected.groupby("run", sort=False).tail(1)
        yield ends.assign(
            last=[frame["value"].iloc[-1] for frame, _ in simulated], truth=[truth for _, truth in simulated]
        )


def curve(
    kind: str, points: int, noise: float, horizon: float, rng: np.random.Generator
) -> tuple[pd.DataFrame, float]:
    """Return a learning curve, and the loss at the horizon under the same schedule."""
    factor, exponent, limit = rng.uniform(0.3, 1.5), rng.uniform(0.2, 1.0), rng.uniform(0.8, 2.0)
    end = rng.uniform(0.6, 1.1) if kind == "plateau" else np.inf
    rise = rng.uniform(0, 0.03)
    time = np.linspace(1 / points, 1, points)

    def loss(at: np.ndarray) -> np.ndarray:
        learned = limit + factor * (10 * np.minimum(at, end)) ** -exponent
        return np.asarray(learned * (1 + rise * np.maximum(at - end, 0)))

    values = loss(time)
    if kind == "cool-down":
        share, fall = rng.choice([0.1, 0.2, 0.3, 0.5]), rng.uniform(0.01, 0.06)
        values = values * (1 - fall * np.clip((time - (1 - share)) / share, 0, 1))
    values = values * np.exp(noise * rng.standard_normal(points))
    frame = pd.DataFrame({"step": STEPS * time, "value": values, "task": "a", "metric": "loss"})
    return frame, float(loss(np.array([horizon]))[0])


def summary(kind: str, points: int, noise: float, ends: list[pd.DataFrame]) -> Figures:
    """Return how many curves were corrected, how far they and the last values are off, and the coverage."""
    rows = pd.concat(ends)
    corrected = rows[rows["corrected"]]
    away = (corrected["value"] - corrected["truth"]).abs()
    return {
        "kind": kind,
        "points": points,
        "noise": noise,
        "curves": len(rows),
        "corrected": float(rows["corrected"].mean()),
        "error": float((away / corrected["truth"]).median()),
        "error_uncorrected": float((corrected["last"] / corrected["truth"] - 1).abs().median()),
        "coverage": float((away < 1.96 * corrected["value_std"]).mean()) if len(corrected) else float("nan"),
        "std": float((corrected["value_std"] / corrected["value"]).median()),
    }


if __name__ == "__main__":
    run(main, smoke={"tables": 1, "curves": 2, "points": (12,), "noise": (0.004,)})
