"""What the draws come to: mean regrets with intervals, and which methods they tell apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import t as t_distribution

from mnmt_laws.arrays import Array
from studies.analysis.decisions.objectives import Objective

LEVEL = 0.95


def regrets_of(objectives: Sequence[Objective], losses: Array) -> dict[str, Array]:
    """Return (mixtures,) the regret of every mixture, by objective, for losses (mixtures, tasks)."""
    return {
        each.name: np.array([each.regret(losses, row) for row in range(len(losses))]) for each in objectives
    }


def summarise(
    choices: pd.DataFrame, regrets: dict[str, Array], losses: Array, tasks: Sequence[str]
) -> pd.DataFrame:
    """Return a row for each objective, method and purchase: mean regret with its 95% interval over draws.

    Also the greatest regret, the mean loss that each task reaches, the mean compute in trainings of the
    target, the weights chosen, and in how many draws no law could be fitted.

    Args:
        choices: `objective`, `method`, `runs`, `draw`, `row` of the mixture, `weight`, `compute`, `law`.
        regrets: Of `regrets_of`.
        losses: (mixtures, tasks) the true losses, nats per token.
        tasks: Names of the tasks.
    """
    reached = dict(zip(tasks, losses[choices["row"].to_numpy()].T, strict=True))
    outcomes = choices.assign(regret=_regrets(choices, regrets), **reached)
    groups = outcomes.groupby(["objective", "method", "runs"], sort=False)
    table = groups.agg(
        regret=("regret", "mean"),
        worst=("regret", "max"),
        **{task: (task, "mean") for task in tasks},
        compute=("compute", "mean"),
        weight=("weight", "median"),
        lightest=("weight", "min"),
        heaviest=("weight", "max"),
        unfitted=("law", lambda laws: int(laws.str.startswith("none").sum())),
    )
    half = groups["regret"].agg(lambda values: _half_width(values.to_numpy(float)))
    table["lower"], table["upper"] = (table["regret"] - half).clip(lower=0.0), table["regret"] + half
    return table.reset_index()


def _regrets(choices: pd.DataFrame, regrets: dict[str, Array]) -> list[float]:
    return [float(regrets[name][row]) for name, row in zip(choices["objective"], choices["row"], strict=True)]


def _half_width(values: Array) -> float:
    """Return half of Student's 95% interval of a mean; NaN for one value."""
    if len(values) < 2:
        return float("nan")
    quantile = t_distribution.ppf((1 + LEVEL) / 2, len(values) - 1)
    return float(quantile * np.std(values, ddof=1) / np.sqrt(len(values)))


def paired_differences(
    choices: pd.DataFrame, regrets: dict[str, Array], others: Sequence[dict[str, Array]], reference: str
) -> pd.DataFrame:
    """Return how much more regret each method has than a law on the same draws, for every purchase of it.

    Intervals are over draws and over the true losses: each of `others` is paired with draws drawn again.

    Args:
        choices: As `summarise` takes them. Methods without purchases are compared with the law at each of its
            purchases, other laws at the same purchase.
        regrets: By the measured losses.
        others: By losses that other seeds might have given.
        reference: The law's method.

    Returns:
        A row for each pair: `objective`, `runs`, `method`, mean `difference`, `lower`, `upper`, the numbers
        of draws with `more` and with `less` regret, and the `verdict`, `open` where the interval holds 0.
    """
    rows = []
    laws = choices[choices["method"].eq(reference)]
    for (objective, runs), law in laws.groupby(["objective", "runs"], sort=False):
        name = str(objective)
        same = choices["objective"].eq(name) & choices["runs"].isin(["", runs])
        for method, rivals in choices[same & choices["method"].ne(reference)].groupby("method", sort=False):
            pair = [each.set_index("draw")["row"].sort_index().to_numpy() for each in (rivals, law)]
            key = {"objective": name, "runs": runs, "method": method}
            rows.append(key | _difference(pair, regrets[name], [each[name] for each in others]))
    return pd.DataFrame(rows)


def _difference(pair: Sequence[Array], regret: Array, others: Sequence[Array]) -> dict[str, object]:
    rival, law = pair
    gaps = regret[rival] - regret[law]
    rng = np.random.default_rng(0)
    lots = rng.integers(len(gaps), size=(len(others), len(gaps)))
    means = [np.mean((each[rival] - each[law])[lot]) for each, lot in zip(others, lots, strict=True)]
    lower, upper = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {
        "difference": float(gaps.mean()), "lower": float(lower), "upper": float(upper),
        "more": int((gaps > 0).sum()), "less": int((gaps < 0).sum()),
        "verdict": "worse" if lower > 0 else "better" if upper < 0 else "open",
    }  # fmt: skip
