"""What weak priors are worth where runs are few: errors and coverage on simulated runs.

Claim: with fewer than three values a parameter, weak priors whose centres the tasks share err less than least
squares, and their intervals hold the truth. No peer but least squares. Cited in docs/laws/uncertainty.md.

Runs obey `share-power` with parameters drawn about the priors' centres; the model predicted has
five times the largest size and four times the longest training.

    python -m benchmarks.laws.few_runs --out benchmarks/results/laws/few_runs.json
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.measurement import Counts, Out, print_table, provenance, run, write_report
from mnmt_laws import KnownLaw, LawFit, ResidualBootstrap, fit, observe, simulate
from mnmt_laws.arrays import Array

PRIORS: tuple[Literal["none", "weak"], ...] = ("none", "weak")
SIZES, WEIGHTS, LENGTHS = (3e5, 1e6, 3e6), (0.2, 0.35, 0.5, 0.65, 0.8), (3e8, 1e9)
TARGET = {"size": 1.5e7, "tokens": 4e9}
TASKS = ("aa", "bb")
NOISE = 0.01


def main(*, runs: Counts = (4, 6, 8, 12), tables: int = 30, refits: int = 100, out: Out = None) -> None:
    """Print errors and coverage.

    Args:
        runs: Models of each simulated table.
        tables: Simulated tables for each number of models.
        refits: Refits of each fit.
        out: JSON file for the figures.
    """
    known = pd.DataFrame(_simulated(runs, tables, refits))
    means = known.groupby(["models", "prior"], sort=False).mean().reset_index()
    print_table(means.round(1).to_dict("records"))
    rows = {"simulated": means.to_dict("records")}
    write_report(out, "weak priors for few runs", rows, provenance("mnmt-laws", "numpy", "scipy"))


def _simulated(runs: Counts, tables: int, refits: int) -> Iterator[dict[str, object]]:
    """Yield errors and coverage of the target's losses, and of α, on tables with known laws."""
    weights = np.arange(0.05, 0.96, 0.05)
    for table in range(tables):
        rng = np.random.default_rng(table)
        known = {task: _draw_law(rng) for task in TASKS}
        all_rows = simulate(known, sizes=SIZES, lengths=LENGTHS, weights=WEIGHTS, noise=NOISE, seed=table)
        models = all_rows.groupby(["size", "mixture"]).ngroup()
        order = rng.permutation(models.max() + 1)
        at = {name: np.full(len(weights), value) for name, value in TARGET.items()}
        truth = np.stack(
            [known[t].losses(at | {"weight": w}) for t, w in zip(TASKS, (weights, 1 - weights), strict=True)]
        )
        for count in runs:
            rows = observe(all_rows[models.isin(order[:count])].drop(columns="irreducible"))
            for prior in PRIORS:
                method = ResidualBootstrap(refits=refits, seed=table)
                fitted = fit(rows, law="share-power", prior=prior, uncertainty=method)
                yield {"models": count, "prior": prior, **_judge(fitted, weights, truth, known)}


def _draw_law(rng: np.random.Generator) -> KnownLaw:
    """Return a law whose terms each add .3 to .9 nats at a million parameters and a billion tokens."""
    alpha, delta = np.exp(rng.normal(np.log(0.3), 0.35, 2))
    beta, gamma = rng.uniform(0.3, 0.9, 2)
    return KnownLaw(
        law="share-power",
        parameters={
            "alpha": alpha, "delta": delta, "q": float(np.exp(rng.normal(np.log(0.7), 0.3))),
            "beta": beta * 1e6**alpha, "gamma": gamma * 1e9**delta, "l_inf": rng.uniform(1, 2.2),
        },
    )  # fmt: skip


def _judge(fitted: LawFit, weights: Array, truth: Array, known: dict[str, KnownLaw]) -> dict[str, float]:
    mixture = {TASKS[0]: weights, TASKS[1]: 1 - weights}
    predicted, by_draw = (
        np.stack(
            [fitted.predict(task=task, mixture=mixture, draws=draws, **TARGET) for task in TASKS], axis=-2
        )
        for draws in (False, True)
    )
    low, high = np.quantile(by_draw, (0.025, 0.975), axis=0)
    bounds = fitted.interval()["alpha"]
    exponents = np.array([known[task].parameters["alpha"] for task in TASKS])
    held = (bounds.sel(bound="lower") <= exponents) & (exponents <= bounds.sel(bound="upper"))
    return {
        "error, %": 100 * float(np.mean(np.abs(predicted / truth - 1))),
        "width, %": 100 * float(np.median((high - low) / truth)),
        "inside, %": 100 * float(np.mean((low <= truth) & (truth <= high))),
        "α inside, %": 100 * float(held.mean()),
    }


if __name__ == "__main__":
    run(main, smoke={"runs": (4,), "tables": 1, "refits": 3})
