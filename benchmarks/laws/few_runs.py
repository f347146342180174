"""What weak priors are worth where runs are few: regret of purchased runs, and coverage of simulated ones.

Claim: with fewer than three values a parameter, weak priors whose centres the tasks share make advice cost a
fraction of what least squares cost, and their intervals hold the truth. No peer but least squares. Cited in
docs/laws/mathematics.md and docs/laws/uncertainty.md.

*Purchases* are those of docs/studies/decisions.md: small runs bought by lot, the target's losses known from
training it at every weight. The mixture is that of the least mean cost over draws, or the estimate's best.
*Simulated* runs obey `share-power` with parameters by_draw about the priors' centres; the model predicted has
five times the largest size and four times the longest training.

    python -m benchmarks.laws.few_runs --out benchmarks/results/laws/few_runs.json
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.measurement import Counts, Names, Numbers, Out, print_table, provenance, run, write_report
from mnmt_laws import KnownLaw, LawFit, ResidualBootstrap, TableError, fit, observe, simulate
from mnmt_laws.arrays import Array
from studies.analysis.decisions.objectives import Problem, curves_of, losses_at
from studies.analysis.decisions.purchases import Market, buy, read_market

TABLE = Path("docs/studies/splitting/unrelated.csv")
LAWS = ("share-tied", "share-power", "exponent-exposure")
WANTS: dict[str, tuple[float, float] | None] = {
    "equal mean": (0.5, 0.5), "first counts three times": (0.75, 0.25), "the worse of both": None,
}  # fmt: skip
"""The importance of both tasks; None for the greater of their losses."""
PRIORS: tuple[Literal["none", "weak"], ...] = ("none", "weak")
SIZES, WEIGHTS, LENGTHS = (3e5, 1e6, 3e6), (0.2, 0.35, 0.5, 0.65, 0.8), (3e8, 1e9)
TARGET = {"size": 1.5e7, "tokens": 4e9}
TASKS = ("aa", "bb")
NOISE = 0.01


def main(
    *,
    laws: Names = LAWS,
    budgets: Numbers = (1.0, 2.0, 4.0),
    draws: int = 11,
    runs: Counts = (4, 6, 8, 12),
    tables: int = 30,
    refits: int = 100,
    out: Out = None,
) -> None:
    """Print regrets of purchases, then errors and coverage on simulated tables.

    Args:
        laws: Names of the laws that choose.
        budgets: Units of small runs, in trainings of the target.
        draws: Purchases for each budget.
        runs: Models of each simulated table.
        tables: Simulated tables for each number of models.
        refits: Refits of each fit.
        out: JSON file for the figures.
    """
    market = read_market(TABLE)
    bought = pd.DataFrame(_regrets(market, laws, budgets, draws, refits))
    regret = bought.groupby(["law", "want", "units", "prior"], sort=False).mean().reset_index()
    known = pd.DataFrame(_simulated(runs, tables, refits))
    simulated = known.groupby(["models", "prior"], sort=False).mean().reset_index()
    figures = {"purchases": regret.to_dict("records"), "simulated": simulated.to_dict("records")}
    for name, table in (("purchases", regret), ("simulated", simulated)):
        print(f"\n### {name}\n")
        print_table([{key: _text(value) for key, value in row.items()} for row in table.to_dict("records")])
    write_report(out, "weak priors for few runs", figures, provenance("mnmt-laws", "numpy", "scipy"))


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _regrets(
    market: Market, laws: Names, budgets: Numbers, draws: int, refits: int
) -> Iterator[dict[str, object]]:
    """Yield the regret of every choice, in thousandths of a nat."""
    problem, truth = market.problem, losses_at(curves_of(market.target), market.problem.mixtures)
    for draw in range(draws):
        for units in budgets:
            rows = buy(
                market.small, budget=units * market.unit, tokens=problem.tokens, horizons="long",
                rng=np.random.default_rng(draw),
            )  # fmt: skip
            rows = rows[rows["weight"].gt(0)].drop(columns=["irreducible", "row"])
            for law in laws:
                for prior in PRIORS:
                    method = ResidualBootstrap(refits=refits, seed=draw)
                    try:
                        fitted = fit(rows, law=law, prior=prior, uncertainty=method)  # type: ignore[arg-type]
                    except TableError:
                        continue
                    losses, by_draw = _losses_of_target(fitted, problem)
                    for want, importance in WANTS.items():
                        costs = 1e3 * _costs(truth, importance)
                        best = int(_costs(losses, importance).argmin())
                        mean = problem.equal
                        if np.isfinite(by_draw).all():
                            mean = int(_costs(by_draw, importance).mean(axis=0).argmin())
                        yield {
                            "law": law, "want": want, "units": units, "prior": prior,
                            "values a parameter": len(rows) / 2 / len(fitted.law.parameters),
                            "by the estimate": costs[best] - costs.min(),
                            "by the draws": costs[mean] - costs.min(),
                        }  # fmt: skip


def _costs(losses: Array, importance: tuple[float, float] | None) -> Array:
    """Return (..., mixtures) costs of losses (..., mixtures, tasks)."""
    return np.asarray(losses.max(axis=-1) if importance is None else losses @ np.array(importance))


def _losses_of_target(fitted: LawFit, problem: Problem) -> tuple[Array, Array]:
    """Return (mixtures, tasks) losses by the estimate, and by every refit before that."""
    mixture = dict(zip(problem.tasks, problem.mixtures.T, strict=True))
    at = {"size": problem.size, "tokens": problem.tokens, "mixture": mixture}
    losses = [fitted.predict(task=task, **at) for task in problem.tasks]  # type: ignore[arg-type]
    by_draw = [fitted.predict(task=task, draws=True, **at) for task in problem.tasks]  # type: ignore[arg-type]
    return np.stack(losses, axis=-1), np.stack(by_draw, axis=-1)


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
    run(
        main,
        smoke={
            "laws": ("share-power",),
            "budgets": (1.0,),
            "draws": 1,
            "runs": (4,),
            "tables": 1,
            "refits": 3,
        },
    )
