"""Draws: which seeds, which small runs, and what every method chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from studies.analysis.decisions.advice import Advice
from studies.analysis.decisions.law_advice import laws
from studies.analysis.decisions.market import Market
from studies.analysis.decisions.objectives import Objective
from studies.analysis.decisions.purchases import Purchase, buy
from studies.analysis.decisions.search_advice import rules, searches

Choice = dict[str, object]
"""`objective`, `method`, `runs` (the purchase), `draw`, `row` of the mixture, `weight`, `compute`, `law`."""


def simulate(
    market: Market, objectives: Sequence[Objective], *, draws: int, purchases: Sequence[Purchase]
) -> Iterator[Choice]:
    """Yield the choice of every draw, purchase, method and objective.

    Args:
        market: The trained models.
        objectives: What the practitioner may want.
        draws: Draws of seeds and of small runs.
        purchases: What the laws' runs may cost.
    """
    for draw in range(draws):
        print(f"draw {draw + 1} of {draws}", flush=True)
        for runs, advice in _advice(market, purchases, draw):
            for objective in objectives:
                if not (advice.proxy and objective.needs_levels):
                    yield _choice(market, advice, objective) | {"runs": runs, "draw": draw}


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
