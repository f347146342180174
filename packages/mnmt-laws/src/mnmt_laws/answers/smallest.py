"""The smallest model, or the least compute, with an even chance to meet target losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from mnmt_laws.answers.arguments import check_number, check_targets
from mnmt_laws.answers.decision.asked import Asked, forecast_for
from mnmt_laws.answers.extrapolation import extrapolation
from mnmt_laws.answers.mixtures.budget import FLOPS_PER_TOKEN_PARAMETER
from mnmt_laws.answers.mixtures.simplex import simplex_points
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.forecasts.forecast import Forecast
from mnmt_laws.forecasts.target import Target, usual_target
from mnmt_laws.laws import LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource, observe

EVEN, SURE = 0.5, 0.9
"""The chance that the smallest model has to meet all targets, and the chance to be fairly sure."""

_MIXTURES = 400
_BEYOND = 1e4  # times the largest size: where a search ends
_REASON = f"no size up to {_BEYOND:g} times the largest has an even chance to meet them"
_HALVINGS = 24
_LENGTHS = 12
_COARSE = 12  # every twelfth mixture, while the length is searched for


@dataclass(frozen=True, kw_only=True)
class SmallestModel:
    """The smallest model with an even chance to meet all targets, at a length or with the least compute."""

    targets: dict[str, float]
    """The metric that each task should reach."""

    size: float
    """N, parameters; infinite if no size is enough."""

    fairly_sure: float
    """N with a chance of 90%; infinite if no size has it."""

    tokens: float | None = None
    """D, tokens of all tasks; None where the table has one length."""

    budget: float | None = None
    """FLOPs, where the length was open."""

    weights: dict[str, float]
    """The mixture with the best chance at that size; empty if no size is enough."""

    predicted: dict[str, float]
    """The metric of each task there."""

    reason: str
    """Why no size is enough; empty if one is."""

    warnings: tuple[str, ...]
    """The ways in which the answer leaves the observed range."""

    forecast: Forecast = field(repr=False)
    """The average over forms that it rests on."""


def smallest_model(
    source: TableSource | Observations | LawFit | Forecast,
    *,
    targets: Mapping[str, float],
    tokens: float | None = None,
    law: LawName | Law | Literal["auto"] = "auto",
    flops_per_token_parameter: float = FLOPS_PER_TOKEN_PARAMETER,
    refits: int = 200,
) -> SmallestModel:
    """Find the smallest model that meets every target with some mixture, with an even chance.

    Where lengths vary and none is given, size and length are those of the least compute 6 N D.

    Args:
        source: A run table or anything that `observe` takes, a fit, or a forecast.
        targets: The metric that tasks should reach; tasks without a target get any weight.
        tokens: D, tokens of all tasks.
        law: One law, or `auto` for the average over the laws and rulers that the table admits.
        flops_per_token_parameter: The cost of a run, 6 in C = 6 N D.
        refits: The number of draws.

    Raises:
        TableError: If the table cannot be read, or no law that predicts mixtures can be fitted.
        ArgumentError: If a target names another task or is not above 0, or the law knows no size.
    """
    rate = check_number("flops_per_token_parameter", flops_per_token_parameter)
    if not isinstance(source, (LawFit, Forecast)):
        source = observe(source)
    observations = source if isinstance(source, Observations) else source.observations
    numbers = check_targets(source.tasks, targets, observations.metric)
    if usual_target(observations).size is None:
        raise ArgumentError("`targets` need a table of several sizes, for the smallest of them; give a size.")
    forecast, _ = forecast_for(source, Asked(tokens=tokens), law=law, refits=refits, length=tokens is None)
    search = _Search(forecast=forecast, targets=numbers)
    length = forecast.target.tokens
    is_open = tokens is None and length is not None
    if is_open:
        length = search.cheapest_length()
    size = search.smallest(length, EVEN)
    return _answer(search, size, length, budget=rate * size * length if is_open and length else None)


def _answer(search: _Search, size: float, tokens: float | None, *, budget: float | None) -> SmallestModel:
    forecast, weights, predicted = search.forecast, {}, {}
    if math.isfinite(size):
        forecast = replace(forecast, target=Target(size=size, tokens=tokens))
        mixture = search.points[search.chances(size, tokens).argmax()]
        weights = dict(zip(forecast.sources, mixture.tolist(), strict=True))
        mean, _ = forecast.predict(mixture[None])
        predicted = dict(zip(forecast.tasks, mean[:, 0].tolist(), strict=True))
    return SmallestModel(
        targets=dict(search.targets), size=size, fairly_sure=search.smallest(tokens, SURE), tokens=tokens,
        budget=budget, weights=weights, predicted=predicted,
        reason="" if weights else _REASON,
        warnings=extrapolation(forecast.best, weights, **forecast.at) if weights else (),
        forecast=forecast,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Search:
    """Chances of models to meet targets."""

    forecast: Forecast
    targets: Mapping[str, float]

    @property
    def points(self) -> Array:
        """(n, sources) mixtures."""
        return simplex_points(len(self.forecast.sources), 1e-3, most=_MIXTURES)

    def chances(self, size: float, tokens: float | None, step: int = 1) -> Array:
        """Return (n,) the chance that a model meets all targets, for every `step`-th mixture.

        A chance of 0 is a little below 0, the more is missed.
        """
        at = {"size": size} | ({} if tokens is None else {"tokens": tokens})
        losses = self.forecast.models(self.points[::step], apart=False, **at)
        losses = self.forecast.sign * losses
        gaps = np.stack(
            [
                losses[:, self.forecast.tasks.index(task)] - self.forecast.sign * target
                for task, target in self.targets.items()
            ]
        )
        missed = np.maximum(gaps, 0.0).sum(axis=0)
        return np.asarray(np.mean(missed <= 0, axis=0) - 1e-6 * missed.mean(axis=0))

    def smallest(self, tokens: float | None, chance: float, step: int = 1) -> float:
        """Return the least size at which some mixture has a chance; infinite where none has it."""
        sizes = self.forecast.observations.rows_to_fit(zero_shot=True)["size"]

        def enough(log_size: float) -> bool:
            return bool(self.chances(math.exp(log_size), tokens, step).max() >= chance)

        return _least(enough, math.log(sizes.min() / _BEYOND), math.log(sizes.max() * _BEYOND))

    def cheapest_length(self) -> float:
        """Return the length of least compute, from a tenth of the shortest to 100 times the longest."""
        lengths = self.forecast.observations.rows_to_fit(zero_shot=True)["tokens"]
        low, high = float(lengths.min()) / 10, float(lengths.max()) * 100
        for _ in range(2):  # the second time around the best of the first
            tried = np.geomspace(low, high, _LENGTHS)
            costs = np.array([self.smallest(float(tokens), EVEN, _COARSE) * tokens for tokens in tried])
            best = int(costs.argmin())
            low, high = float(tried[max(best - 1, 0)]), float(tried[min(best + 1, _LENGTHS - 1)])
        return float(tried[best])


def _least(enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return exp of the least number that is enough, between two; infinite where the greatest is not."""
    if not enough(high):
        return math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return math.exp(high)
