"""The runs to train next, which most reduce the uncertainty of a quantity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from mnmt_laws.answers.arguments import check_number, require_law
from mnmt_laws.answers.design.beliefs import Beliefs
from mnmt_laws.answers.design.candidates import CandidateRun, as_candidate, cost_of_runs, default_candidates
from mnmt_laws.answers.design.quantity import parse_quantity
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.tables.mixture import format_mixture

_FEWEST_REFITS, _NUM_RUNS = 10, 3


@dataclass(frozen=True, kw_only=True)
class Design:
    """Runs to train next."""

    quantity: str
    """The quantity, as in `FORMS` of the module `quantity`."""

    std: float
    """Standard deviation of the quantity now; for a smallest size, of its logarithm."""

    runs: pd.DataFrame
    """The proposed runs in order: `size`, `tokens` (for a law that knows the training length), `mixture`,
    `cost`, `total_cost`, `std` (of the quantity after this run and earlier ones) and `share` (this, over the
    present standard deviation)."""

    candidates: pd.DataFrame
    """Every candidate as the first run: `size`, `tokens`, `mixture`, `cost` and `std`, the best first."""

    method: str
    """The method of selection, in words."""


def design(
    fit: LawFit,
    *,
    quantity: str,
    runs: int = _NUM_RUNS,
    candidates: Sequence[CandidateRun | tuple[float, Mapping[str, float]]] | None = None,
    budget: float = math.inf,
    per: Literal["cost", "run"] = "cost",
) -> Design:
    """Propose the runs that most reduce the uncertainty of a quantity.

    The refits are a sample of the laws that the data allow. Over them, a candidate's losses y and the
    quantity g vary together. If the candidate is trained, its losses with noise variance Σ leave
    var g - cov(g, y) (cov y + Σ)^-1 cov(y, g) of the quantity's variance. Σ is the scatter of models about
    the laws. Runs are selected one after the other, each as if the earlier ones were trained. A run measures
    every task of its mixture, and for laws of zero-shot tasks all other tasks, too.

    Args:
        fit: A fit, with refits, of a law that predicts any mixture.
        quantity: One of `quantity.FORMS`, such as `loss:en-de@size=1e9,p=0.3` or `weight:en-de@size=1e9`;
            with `tokens=1e10` for a law that knows the training length.
        runs: The number of runs to propose.
        candidates: Sizes, mixtures and training lengths to choose from; by default
            `default_candidates`.
        budget: FLOPs that all proposed runs may cost together. A run costs 6 N D, or without length a power
            of size fitted to the table's `flops`, 6 N times the median `tokens`, or N.
        per: Whether runs compete by the fall of the log-variance for their `cost`, or for one `run`, at any
            cost.

    Raises:
        TypeError: If `fit` is not a fit, or a number has another type.
        ArgumentError: If the fit has no refits, the quantity cannot be read, no candidate is within the
            budget, or an argument is out of range.
    """
    _check(fit, runs, budget, per)
    names = list(dict.fromkeys([*fit.tasks, *fit.sources]))
    values = parse_quantity(quantity, names).draws(fit)
    options = [as_candidate(fit, option) for option in candidates or ()]
    if candidates is not None and not options:
        raise ArgumentError("`candidates` must hold at least one size and mixture, but is empty.")
    options = options or default_candidates(fit)
    return _propose(fit, quantity, values, options, runs=runs, budget=budget, per=per)


def _propose(
    fit: LawFit,
    quantity: str,
    values: Array,
    options: list[CandidateRun],
    *,
    runs: int,
    budget: float,
    per: str,
) -> Design:
    price = cost_of_runs(fit)
    costs = np.array([float(price(*option.arguments)) for option in options])
    beliefs = Beliefs.of(fit, values, options)
    selected, first = _select(beliefs, costs, runs, budget, per)
    table = _candidate_table(options, costs)
    proposed = table.iloc[[index for index, _ in selected]].reset_index(drop=True)
    std = float(np.sqrt(beliefs.variance))
    proposed = proposed.assign(total_cost=proposed["cost"].cumsum(), std=[after for _, after in selected])
    return Design(
        quantity=quantity,
        std=std,
        runs=proposed.assign(share=proposed["std"] / std),
        candidates=table.assign(std=first).sort_values("std", kind="stable").reset_index(drop=True),
        method=f"linear-Gaussian update over {fit.draws.sizes['draw']} refits, greedy by {per}",
    )


def _select(
    beliefs: Beliefs, costs: Array, runs: int, budget: float, per: str
) -> tuple[list[tuple[int, float]], Array]:
    """Return (candidate, deviation after it) of each selected run, and (candidates,) that of a first run."""
    selected: list[tuple[int, float]] = []
    first = after = beliefs.variances_after()
    spent = 0.0
    for _ in range(runs):
        affordable = costs <= budget - spent
        if not affordable.any():
            break
        gain = np.log(beliefs.variance) - np.log(np.maximum(after, 1e-300))
        worth = np.where(affordable, gain / costs if per == "cost" else gain, -np.inf)
        best = int(worth.argmax())
        beliefs, spent = beliefs.after(best), spent + float(costs[best])
        selected.append((best, float(np.sqrt(beliefs.variance))))
        after = beliefs.variances_after()
    if not selected:
        raise ArgumentError(
            f"`budget` must be at least {costs.min():.3g} FLOPs, the cheapest run, but is {budget:.3g}."
        )
    return selected, np.sqrt(first)


def _check(fit: LawFit, runs: object, budget: object, per: str) -> None:
    require_law(fit)
    if fit.draws.sizes["draw"] < _FEWEST_REFITS:
        raise ArgumentError("`fit` must have at least 10 refits, from which the uncertainty comes.")
    if per not in ("cost", "run"):
        raise ArgumentError(f"`per` must be cost or run, but is {per!r}.")
    if isinstance(runs, bool) or not isinstance(runs, int):
        raise TypeError(f"`runs` must be a whole number, but is {runs!r}.")
    if runs < 1:
        raise ArgumentError(f"`runs` must be at least 1, but is {runs}.")
    if budget != math.inf:
        check_number("budget", budget)


def _candidate_table(options: Sequence[CandidateRun], costs: Array) -> pd.DataFrame:
    rounded = [{task: round(weight, 4) for task, weight in option.mixture.items()} for option in options]
    columns: dict[str, Any] = {
        "size": [option.size for option in options],
        "tokens": [option.tokens for option in options],
        "mixture": [format_mixture(mixture) for mixture in rounded],
        "cost": costs,
    }
    known = {name: values for name, values in columns.items() if values[0] is not None}
    return pd.DataFrame(known)
