"""The runs to train next: those that most reduce the uncertainty of a quantity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_laws.answers.quantity import parse_quantity
from mnmt_laws.answers.simplex import simplex_points
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit, relative_noise, require_mixtures
from mnmt_laws.tables.mixture import format_mixture

Candidate = tuple[float, Mapping[str, float]]
"""A size and a mixture."""

_MAX_MIXTURES = 60
_FLOPS_PER_PARAMETER = 6.0  # and token: forward and backward (Kaplan et al. 2020)


@dataclass(frozen=True, kw_only=True)
class Design:
    """Runs to train next."""

    quantity: str
    """The quantity, as in `FORMS` of the module `quantity`."""

    std: float
    """Standard deviation of the quantity now; for a smallest size, of its logarithm."""

    runs: pd.DataFrame
    """The proposed runs in order: `size`, `mixture`, `cost`, `total_cost`, `std` (of the quantity after this
    run and those before it) and `share` (that, as a share of the present standard deviation)."""

    candidates: pd.DataFrame
    """Every candidate as the first run: `size`, `mixture`, `cost` and `std`, the best first."""

    method: str
    """How the runs were selected, in words."""


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

    The refits are a sample of the laws that the data allow. Over them, a candidate's losses y and the
    quantity g vary together. If the candidate is trained, its losses with noise variance Σ leave
    var g - cov(g, y) (cov y + Σ)^-1 cov(y, g) of the quantity's variance. Σ is the scatter of models about
    the laws. Runs are selected one after the other, each as if those before it were trained. A run measures
    every task of its mixture.

    Args:
        fit: A fit of a capacity law with refits.
        quantity: One of `quantity.FORMS`, such as `loss:en-de@size=1e9,p=0.3` or `weight:en-de@size=1e9`.
        runs: How many to propose.
        candidates: Sizes and mixtures to choose from; by default those of `default_candidates`.
        cost: FLOPs of a run by its size; by default a power of size fitted to the table's `flops`, or 6 N
            times the table's median `tokens`, or N.
        budget: FLOPs that all proposed runs may cost together.
        per: Whether runs compete by the fall of the log-variance for their `cost`, or for one `run` whatever
            it costs.

    Raises:
        TypeError: If `fit` is not a fit.
        ValueError: If the fit has no refits, the quantity cannot be read, no candidate is within the
            budget, or an argument is out of range.
    """
    _check(fit, runs, budget, per)
    target = parse_quantity(quantity, fit.tasks)
    options = list(candidates) if candidates is not None else default_candidates(fit)
    if not options:
        raise ValueError("`candidates` must hold at least one size and mixture, but is empty.")
    costs = np.array([(cost or cost_of_runs(fit))(size) for size, _ in options])
    belief = _Beliefs.of(fit, target.draws(fit), options)
    selected, first = _select(belief, costs, runs, budget, per)
    table = _candidate_table(options, costs)
    proposed = table.iloc[[index for index, _ in selected]].reset_index(drop=True)
    std = float(np.sqrt(belief.variance))
    proposed = proposed.assign(total_cost=proposed["cost"].cumsum(), std=[after for _, after in selected])
    ranked = table.assign(std=first).sort_values("std", kind="stable").reset_index(drop=True)
    return Design(
        quantity=quantity,
        std=std,
        runs=proposed.assign(share=proposed["std"] / std),
        candidates=ranked,
        method=f"linear-Gaussian update over {fit.draws.sizes['draw']} refits, greedy by {per}",
    )


def default_candidates(fit: LawFit) -> list[Candidate]:
    """Return the sizes observed and twice the largest, with the mixtures observed and those between them."""
    sizes = np.unique(fit.observations.fit["size"].to_numpy(float))
    return [(float(size), mixture) for size in [*sizes, 2 * sizes[-1]] for mixture in _mixtures(fit)]


def cost_of_runs(fit: LawFit) -> Callable[[float], float]:
    """Return the FLOPs of a run by its size, as the table suggests."""
    rows = fit.observations.frame
    costed = rows[rows["flops"].gt(0)]
    if costed["size"].nunique() > 1:
        slope, start = np.polyfit(
            np.log(costed["size"].to_numpy(float)), np.log(costed["flops"].to_numpy(float)), 1
        )
        return lambda size: float(np.exp(start + slope * np.log(size)))
    tokens = float(rows["tokens"].median())
    scale = _FLOPS_PER_PARAMETER * tokens if tokens > 0 else 1.0
    return lambda size: scale * size


@dataclass(frozen=True)
class _Beliefs:
    """The joint normal distribution of the quantity and of every candidate's losses, from the refits."""

    covariance: Array
    """(1 + candidates × tasks,) squared; the quantity first."""

    noise: Array
    """(candidates × tasks,) variance of a measurement about the law; infinite for tasks not trained."""

    num_tasks: int

    @classmethod
    def of(cls, fit: LawFit, quantity: Array, options: Sequence[Candidate]) -> _Beliefs:
        finite = np.isfinite(quantity)
        if finite.sum() < 10 or np.ptp(quantity[finite]) == 0:
            raise ValueError(
                "`quantity` must vary over the refits, but does not; no run can make it more certain."
            )
        losses, noise = [], []
        for size, mixture in options:
            for task in fit.tasks:
                weight = float(mixture.get(task, 0.0))
                measured = weight > 0
                weights = {name: max(float(mixture.get(name, 0.0)), 1e-9) for name in fit.tasks}
                predicted = (
                    fit.predict(draws=True, task=task, size=size, mixture=weights)
                    if measured
                    else np.zeros(len(finite))
                )
                losses.append(predicted[finite])
                noise.append(
                    (float(np.mean(predicted)) * relative_noise(fit, task)) ** 2 if measured else math.inf
                )
        covariance = np.cov(np.vstack([quantity[finite], *losses]))
        return cls(covariance, np.array(noise), len(fit.tasks))

    @property
    def variance(self) -> float:
        """The variance of the quantity."""
        return float(self.covariance[0, 0])

    def after(self, candidate: int) -> _Beliefs:
        """Return the beliefs once a candidate is trained."""
        columns, gain = self._gain(candidate)
        covariance = self.covariance - self.covariance[:, columns] @ gain @ self.covariance[columns, :]
        return _Beliefs(covariance, self.noise, self.num_tasks)

    def variance_after(self, candidate: int) -> float:
        """Return the variance of the quantity once a candidate is trained."""
        columns, gain = self._gain(candidate)
        shared = self.covariance[0, columns]
        return max(self.variance - float(shared @ gain @ shared), 0.0)

    def _gain(self, candidate: int) -> tuple[NDArray[np.int64], Array]:
        columns = 1 + candidate * self.num_tasks + np.arange(self.num_tasks)
        columns = columns[np.isfinite(self.noise[columns - 1])]
        inner = self.covariance[np.ix_(columns, columns)] + np.diag(self.noise[columns - 1])
        return columns, np.asarray(np.linalg.inv(inner))


def _select(
    belief: _Beliefs, costs: Array, runs: int, budget: float, per: str
) -> tuple[list[tuple[int, float]], Array]:
    """Return (candidate, deviation after it) of each selected run, and (candidates,) those of a first run."""
    selected: list[tuple[int, float]] = []
    start, spent = belief, 0.0
    for _ in range(runs):
        affordable = np.flatnonzero(costs <= budget - spent)
        if not len(affordable):
            break
        after = np.array([belief.variance_after(int(index)) for index in affordable])
        gain = np.log(belief.variance) - np.log(np.maximum(after, 1e-300))
        worth = gain / costs[affordable] if per == "cost" else gain
        best = int(affordable[int(worth.argmax())])
        belief, spent = belief.after(best), spent + float(costs[best])
        selected.append((best, float(np.sqrt(max(belief.variance, 0.0)))))
    if not selected:
        raise ValueError(
            f"`budget` must be at least {costs.min():.3g} FLOPs, the cheapest run, but is {budget:.3g}."
        )
    return selected, np.sqrt(np.array([start.variance_after(index) for index in range(len(costs))]))


def _check(fit: LawFit, runs: int, budget: float, per: str) -> None:
    require_mixtures(fit)
    if fit.draws.sizes["draw"] < 10:
        raise ValueError("`fit` must have at least 10 refits, from which the uncertainty comes.")
    if per not in ("cost", "run"):
        raise ValueError(f"`per` must be cost or run, but is {per!r}.")
    if runs < 1 or not budget > 0:
        raise ValueError(
            f"`runs` must be at least 1 and `budget` above 0, but they are {runs} and {budget:g}."
        )


def _mixtures(fit: LawFit) -> list[dict[str, float]]:
    """Return the mixtures observed and those midway between them; for three tasks or more, a spread."""
    tasks = fit.tasks
    if len(tasks) > 2:
        points = simplex_points(len(tasks), 0.02)
        return [
            dict(zip(tasks, row, strict=True))
            for row in points[:: max(1, len(points) // _MAX_MIXTURES)].tolist()
        ]
    rows = fit.observations.frame
    shares = rows["weight"].where(rows["task"] == tasks[0], 1 - rows["weight"])
    observed = np.unique(shares.round(6))
    candidates = np.unique(np.concatenate([observed, (observed[:-1] + observed[1:]) / 2]).round(4))
    if len(tasks) == 1:
        return [{tasks[0]: float(share)} for share in candidates if share > 0]
    return [
        {
            task: weight
            for task, weight in zip(tasks, (float(share), float(1 - share)), strict=True)
            if weight > 0
        }
        for share in candidates
    ]


def _candidate_table(options: Sequence[Candidate], costs: Array) -> pd.DataFrame:
    rounded = [{task: round(weight, 4) for task, weight in mixture.items()} for _, mixture in options]
    return pd.DataFrame(
        {
            "size": [size for size, _ in options],
            "mixture": [format_mixture(mixture) for mixture in rounded],
            "cost": costs,
        }
    )
