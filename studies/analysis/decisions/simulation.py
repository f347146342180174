"""Draws: which seeds, which small runs, and what every method chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from studies.analysis.decisions.advice import Advice
from studies.analysis.decisions.law_advice import laws
from studies.analysis.decisions.market import Market
from studies.analysis.decisions.objectives import Objective
from studies.analysis.decisions.purchases import Purchase, buy
from studies.analysis.decisions.search_advice import rules, searches

Choice = dict[str, object]
"""`objective`, `method`, `runs` (the purchase), `draw`, `row` of the mixture, `weight`, `compute`, `law`."""


def complete(
    file: Path, market: Market, objectives: Sequence[Objective], *, draws: int, purchases: Sequence[Purchase]
) -> pd.DataFrame:
    """Return the choices of so many draws, and add to a file each draw that it lacks as it is simulated."""
    choices = pd.read_csv(file, keep_default_na=False) if file.is_file() else pd.DataFrame(columns=["draw"])
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
    row = advice.choose(objective)
    return {
        "objective": objective.name,
        "method": advice.method,
        "row": row,
        "weight": float(market.problem.mixtures[row, 0]),
        "compute": round(advice.flops / market.unit + (not advice.trained), 4),
        "law": advice.law,
    }
