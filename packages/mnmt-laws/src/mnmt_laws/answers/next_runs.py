"""Which runs to train next: those that most reduce the uncertainty of what one wants to know."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_laws.answers.frontier import require_capacity
from mnmt_laws.answers.quantity import parse_quantity
from mnmt_laws.answers.simplex import simplex_points
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit, relative_noise
from mnmt_laws.tables.mixture import format_mixture

Candidate = tuple[float, Mapping[str, float]]
"""A size and a mixture."""

_MOST_MIXTURES = 60
_FLOPS_PER_PARAMETER = 6.0  # and token: forward and backward (Kaplan et al. 2020)


@dataclass(frozen=True, kw_only=True)
class Design:
    """Runs to train next."""

    quantity: str

    std: float
    """Standard deviation of the quantity now; of a smallest size, of its logarithm."""

    runs: pd.DataFrame
    """The proposed runs in order: `size`, `mixture`, `cost`, `total_cost`, `std` (of the quantity once the
    run and those before it are there), `share` (of the present standard deviation)."""

    candidates: pd.DataFrame
    """Every candidate as the first run: `size`, `mixture`, `cost`, `std`, best first."""

    method: str


def design(
    fit: LawFit,
    *,
    quantity: str,
    runs: int = 3,
    candidates: Sequence[Candidate] | None = None,
    cost: Callable[[float], float] | None = None,
    budget: float = math.inf,
    per: Literal["cost", "run"] = "cost",
) -> Design:
    """Propose the runs that most reduce the uncertainty of a quantity.

    The refits are taken as a sample of what the laws may be. Over them, a candidate's losses y and the
    quantity g vary together; were the run trained, its losses with noise variance Σ would leave var g -
    cov(g, y) (cov y + Σ)^-1 cov(y, g) of the quantity's variance. Σ is the scatter of models about the
    laws. Runs are chosen one after the other, each with those before it in place; a run measures every task
    of its mixture.

    Args:
        fit: A fit of a capacity law with refits.
        quantity: One of `quantity.FORMS`, such as `loss:en-de@size=1e9,p=0.3` or `weight:en-de@size=1e9`.
        runs: How many to propose.
        candidates: Sizes and mixtures to choose from; by default the sizes observed and twice the largest,
            with the
            mixtures observed and those between them.
        cost: FLOPs of a run by its size; by default a power of size fitted to the table's `flops`, or 6 N
            times the
            table's median `tokens`, or N.
        budget: FLOPs that all proposed runs may cost together.
        per: Whether each choice is by the fall of the log-variance for its `cost`, or for a `run` whatever
            it costs.

    Raises:
        ValueError: If the fit has no refits, the quantity cannot be read, no candidate is within the
            budget, or an
            argument is out of range.
    """
    _check(fit, runs, budget)
    wanted = parse_quantity(quantity, fit.tasks)
    pool = list(candidates) if candidates is not None else default_candidates(fit)
    prices = np.array([(cost or cost_of_runs(fit))(size) for size, _ in pool])
    belief = _Belief.of(fit, wanted.draws(fit), pool)
    chosen, first = _choose(belief, prices, runs, budget, per)
    table = _labelled(pool, prices)
    proposed = table.iloc[[index for index, _ in chosen]].reset_index(drop=True)
    std = float(np.sqrt(belief.variance))
    proposed = proposed.assign(total_cost=proposed["cost"].cumsum(), std=[left for _, left in chosen])
    ranked = table.assign(std=first).sort_values("std", kind="stable").reset_index(drop=True)
    return Design(
        quantity=quantity,
        std=std,
        runs=proposed.assign(share=proposed["std"] / std),
        candidates=ranked,
        method=f"linear-Gaussian update over {fit.draws.sizes['draw']} refits, greedy by {per}",
    )


def default_candidates(fit: LawFit) -> list[Candidate]:
    """The sizes observed and twice the largest, with mixtures observed and between."""
    sizes = np.unique(fit.observations.fit["size"].to_numpy(float))
    return [(float(size), mixture) for size in [*sizes, 2 * sizes[-1]] for mixture in _mixtures(fit)]


def cost_of_runs(fit: LawFit) -> Callable[[float], float]:
    """FLOPs of a run by its size, as the table tells."""
    rows = fit.observations.frame
    known = rows[rows["flops"].gt(0)]
    if known["size"].nunique() > 1:
        slope, start = np.polyfit(
            np.log(known["size"].to_numpy(float)), np.log(known["flops"].to_numpy(float)), 1
        )
        return lambda size: float(np.exp(start + slope * np.log(size)))
    tokens = float(rows["tokens"].median())
    scale = _FLOPS_PER_PARAMETER * tokens if tokens > 0 else 1.0
    return lambda size: scale * size


@dataclass(frozen=True)
class _Belief:
    """What the refits say of the quantity and of every candidate's losses, together."""

    covariance: Array
    """(1 + candidates × tasks,) squared; the quantity first."""

    noise: Array
    """(candidates × tasks,) variance of a measurement about the law; infinite for tasks not trained."""

    num_tasks: int

    @classmethod
    def of(cls, fit: LawFit, quantity: Array, pool: Sequence[Candidate]) -> _Belief:
        known = np.isfinite(quantity)
        if known.sum() < 10 or np.ptp(quantity[known]) == 0:
            raise ValueError(
                "`quantity` must vary over the refits, but does not; there is nothing to learn of it."
            )
        losses, noise = [], []
        for size, mixture in pool:
            for task in fit.tasks:
                weight = float(mixture.get(task, 0.0))
                measured = weight > 0
                named = {name: max(float(mixture.get(name, 0.0)), 1e-9) for name in fit.tasks}
                drawn = (
                    fit.predict(draws=True, task=task, size=size, mixture=named)
                    if measured
                    else np.zeros(len(known))
                )
                losses.append(drawn[known])
                noise.append(
                    (float(np.mean(drawn)) * relative_noise(fit, task)) ** 2 if measured else math.inf
                )
        together = np.cov(np.vstack([quantity[known], *losses]))
        return cls(together, np.array(noise), len(fit.tasks))

    @property
    def variance(self) -> float:
        """Of the quantity."""
        return float(self.covariance[0, 0])

    def after(self, candidate: int) -> _Belief:
        """What is left to be known once a candidate was trained."""
        columns, gain = self._gain(candidate)
        left = self.covariance - self.covariance[:, columns] @ gain @ self.covariance[columns, :]
        return _Belief(left, self.noise, self.num_tasks)

    def variance_after(self, candidate: int) -> float:
        """Of the quantity, once a candidate was trained."""
        columns, gain = self._gain(candidate)
        shared = self.covariance[0, columns]
        return max(self.variance - float(shared @ gain @ shared), 0.0)

    def _gain(self, candidate: int) -> tuple[NDArray[np.int64], Array]:
        columns = 1 + candidate * self.num_tasks + np.arange(self.num_tasks)
        columns = columns[np.isfinite(self.noise[columns - 1])]
        inner = self.covariance[np.ix_(columns, columns)] + np.diag(self.noise[columns - 1])
        return columns, np.asarray(np.linalg.inv(inner))


def _choose(
    belief: _Belief, prices: Array, runs: int, budget: float, per: str
) -> tuple[list[tuple[int, float]], Array]:
    """(candidate, standard deviation after it) of each chosen run, and (candidates,) those of a first run."""
    chosen: list[tuple[int, float]] = []
    start, spent = belief, 0.0
    for _ in range(runs):
        affordable = np.flatnonzero(prices <= budget - spent)
        if not len(affordable):
            break
        after = np.array([belief.variance_after(int(index)) for index in affordable])
        gain = np.log(belief.variance) - np.log(np.maximum(after, 1e-300))
        worth = gain / prices[affordable] if per == "cost" else gain
        best = int(affordable[int(worth.argmax())])
        belief, spent = belief.after(best), spent + float(prices[best])
        chosen.append((best, float(np.sqrt(max(belief.variance, 0.0)))))
    if not chosen:
        raise ValueError(
            f"`budget` must be at least {prices.min():.3g} FLOPs, the cheapest run, but is {budget:.3g}."
        )
    return chosen, np.sqrt(np.array([start.variance_after(index) for index in range(len(prices))]))


def _check(fit: LawFit, runs: int, budget: float) -> None:
    require_capacity(fit)
    if fit.draws.sizes["draw"] < 10:
        raise ValueError("`fit` must have at least 10 refits, from which the uncertainty comes.")
    if runs < 1 or not budget > 0:
        raise ValueError(
            f"`runs` must be at least 1 and `budget` above 0, but they are {runs} and {budget:g}."
        )


def _mixtures(fit: LawFit) -> list[dict[str, float]]:
    """Mixtures observed and, for two tasks, midway between neighbours; for more, spread over the simplex."""
    tasks = fit.tasks
    if len(tasks) > 2:
        points = simplex_points(len(tasks), 0.02)
        return [
            dict(zip(tasks, row, strict=True))
            for row in points[:: max(1, len(points) // _MOST_MIXTURES)].tolist()
        ]
    rows = fit.observations.frame
    shares = rows["weight"].where(rows["task"] == tasks[0], 1 - rows["weight"])
    seen = np.unique(shares.round(6))
    shown = np.unique(np.concatenate([seen, (seen[:-1] + seen[1:]) / 2]).round(4))
    if len(tasks) == 1:
        return [{tasks[0]: float(share)} for share in shown if share > 0]
    return [
        {
            task: weight
            for task, weight in zip(tasks, (float(share), float(1 - share)), strict=True)
            if weight > 0
        }
        for share in shown
    ]


def _labelled(pool: Sequence[Candidate], prices: Array) -> pd.DataFrame:
    rounded = [{task: round(weight, 4) for task, weight in mixture.items()} for _, mixture in pool]
    return pd.DataFrame(
        {
            "size": [size for size, _ in pool],
            "mixture": [format_mixture(mixture) for mixture in rounded],
            "cost": prices,
        }
    )
