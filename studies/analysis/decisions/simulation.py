"""Decisions made many times over, and their mean regret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as t_distribution

from mnmt_laws.arrays import Array
from studies.analysis.decisions.advice import laws, rules, searches
from studies.analysis.decisions.objectives import Advice, Objective
from studies.analysis.decisions.purchases import Market, Purchase, buy

Choice = dict[str, object]
"""`objective`, `method`, `runs` (the purchase), `draw`, `row` of the mixture, `weight`, `compute`, `law`, and
the `stated` regret."""


def complete(
    file: Path, market: Market, objectives: Sequence[Objective], *, draws: int, purchases: Sequence[Purchase]
) -> pd.DataFrame:
    """Return the choices of so many draws, and add to a file each draw that it lacks as it is simulated."""
    choices = (
        pd.read_csv(file, keep_default_na=False, na_values={"stated": [""]})
        if file.is_file()
        else pd.DataFrame(columns=["draw"])
    )
    for draw in sorted(set(range(draws)) - set(choices["draw"])):
        rows = pd.DataFrame(simulate(market, objectives, draw=draw, purchases=purchases))
        choices = pd.concat([choices, rows]).astype(rows.dtypes) if len(choices) else rows
        choices.to_csv(file, index=False)
    return choices[choices["draw"].lt(draws)]


def simulate(
    market: Market, objectives: Sequence[Objective], *, draw: int, purchases: Sequence[Purchase]
) -> Iterator[Choice]:
    """Yield the choice of every purchase, method and objective in one draw.

    Args:
        market: The trained models.
        objectives: What the practitioner may want.
        draw: Seed of the lots by which seeds and small runs are drawn.
        purchases: What the laws' runs may cost.
    """
    for runs, advice in _advice(market, purchases, draw):
        for objective in objectives:
            if not (advice.proxy and objective.needs_levels):
                yield _choice(market, advice, objective) | {"runs": runs, "draw": draw}


def without_luck(market: Market, objectives: Sequence[Objective]) -> pd.DataFrame:
    """Return what each law chooses when it has every small run of every seed: what is left is its bias."""
    rows = market.small[market.small["tokens"].le(market.problem.tokens)]
    return pd.DataFrame(
        _choice(market, advice, objective)
        for advice in laws(market.problem, rows)
        for objective in objectives
    )


def _advice(market: Market, purchases: Sequence[Purchase], draw: int) -> Iterator[tuple[str, Advice]]:
    """Yield every method's advice in one draw, with what was bought for it."""
    for budget, horizons in purchases:
        bought = buy(
            market.small, budget=budget * market.unit, tokens=market.problem.tokens,
            horizons=horizons, rng=np.random.default_rng(draw),
        )  # fmt: skip
        yield from ((f"{budget:g} {horizons}", advice) for advice in laws(market.problem, bought))
    yield from (("", advice) for advice in rules(market.problem))
    yield from (("", advice) for advice in searches(market, np.random.default_rng(draw)))


def _choice(market: Market, advice: Advice, objective: Objective) -> Choice:
    row, stated = advice.choose(objective, market.problem)
    return {
        "objective": objective.name,
        "method": advice.method,
        "row": row,
        "weight": float(market.problem.mixtures[row, 0]),
        "compute": round(advice.flops / market.unit + (not advice.trained), 4),
        "law": advice.law,
        "stated": stated,
    }


LEVEL = 0.95


def regrets_of(objectives: Sequence[Objective], losses: Array) -> dict[str, Array]:
    """Return (mixtures,) the regret of every mixture, by objective, for losses (mixtures, tasks)."""
    costs = {each.name: each.costs(losses) for each in objectives}
    return {name: values - values.min() for name, values in costs.items()}


def summarise(
    choices: pd.DataFrame, regrets: dict[str, Array], losses: Array, tasks: Sequence[str]
) -> pd.DataFrame:
    """Return a row for each objective, method and purchase: mean regret with its 95% interval over draws.

    Also the greatest regret, the mean of what was stated, the mean loss that each task reaches, the mean
    compute in trainings of the target, the weights chosen, and in how many draws no law could be fitted.

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
        stated=("stated", "mean"),
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
