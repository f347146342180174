"""The choice: the mixture of least mean cost over the draws of a forecast, and its neighbours in cost."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.answers.decision.limits import Limits
from mnmt_laws.answers.decision.stakes import Rival, mixtures_to_beat, rival_of
from mnmt_laws.answers.decision.wants import Want
from mnmt_laws.answers.mixtures.simplex import minimise_on_simplex, simplex_points
from mnmt_laws.arrays import Array
from mnmt_laws.forecasts.forecast import Forecast

_log = logging.getLogger(__name__)

_SPREAD = 400  # mixtures at which each draw is asked for its best
_NEAR, _FAR = 0.03, 1.0  # e-folds of weights, the nearest and farthest neighbours of the choice among these
_STEPS = 200  # weights tried for the range of a weight
_NOISE = 2.0  # standard errors of a mean over draws that a gain must exceed
_ROUNDING = 1e-9  # by which a limit may be broken
_TIE = 1e-9  # cost of a nat of divergence from equal weights: ties go to these


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A mixture, what it costs, and what others would."""

    weights: dict[str, float]

    rule: str
    """The free rule that was taken, since no other mixture is expected to beat it; else empty."""

    regret: float
    """Mean over draws of its cost above each draw's best mixture."""

    ranges: dict[str, tuple[float, float]]
    """The weights of each source, the others kept in proportion, that cost at most `amount` more."""

    amount: float
    """In the unit of the cost."""

    rivals: tuple[Rival, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """A want of the models that a forecast predicts."""

    forecast: Forecast
    want: Want
    limits: Limits

    def costs(self, points: Array, anchors: Array, **at: Array) -> Array:
        """Return (draws, n) costs of (n, sources) mixtures."""
        losses = self.forecast.sign * self.forecast.losses(points, **at)
        return self.want.costs(losses, anchors, self.forecast.tasks)

    def anchors(self, points: Array) -> Array:
        """Return what costs are measured from; see `Want.anchors`."""
        sources, tasks = self.forecast.sources, self.forecast.tasks
        corners = np.array([[float(source == task) for source in sources] for task in tasks])
        sign = self.forecast.sign
        alone = np.stack(
            [sign * self.forecast.losses(corner[None])[:, place, 0] for place, corner in enumerate(corners)],
            axis=1,
        )
        return self.want.anchors(sign * self.forecast.losses(points), alone, tasks)


def choose(
    forecast: Forecast,
    want: Want,
    limits: Limits,
    *,
    amount: float,
    proportions: Mapping[str, float],
    current: Mapping[str, float],
) -> Choice:
    """Return the mixture of least mean cost over the draws of a forecast.

    Where it beats none of the free rules (equal weights, proportions, importance) by more than the noise of
    the mean, the best of these is taken.

    Args:
        forecast: The forecast.
        want: What is wanted.
        limits: The mixtures that may be chosen.
        amount: The cost that the ranges allow.
        proportions: The corpus' proportions; empty where they are unknown.
        current: A mixture to compare with; may be empty.
    """
    _log.info("choose among mixtures")
    question = Question(forecast=forecast, want=want, limits=limits)
    sources, spread = forecast.sources, spread_of(question)
    anchors = question.anchors(spread)
    mixtures = mixtures_to_beat(sources, want.importance, proportions, current)
    points = np.array([[mixture[name] for name in sources] for mixture in mixtures.values()])
    costs = question.costs(points, anchors)
    best = _best(question, anchors)
    rivals = _rivals(mixtures, costs, question.costs(best[None], anchors)[:, 0])
    rule = _free_rule(question, rivals)
    if rule:
        place = list(mixtures).index(rule)
        best, rivals = points[place], _rivals(mixtures, costs, costs[:, place])
    return Choice(
        weights=dict(zip(sources, best.tolist(), strict=True)),
        rule=rule,
        regret=_regret(question, anchors, np.concatenate([spread, _neighbours(question, best)]), best),
        ranges=_ranges(question, anchors, best, amount),
        amount=amount,
        rivals=tuple(
            replace(rival, allowed=bool(good))
            for rival, good in zip(rivals, _allowed(question, rivals), strict=True)
            if rival.name != rule
        ),
    )


def _rivals(mixtures: Mapping[str, dict[str, float]], costs: Array, best_costs: Array) -> list[Rival]:
    """Return what mixtures of (draws, mixtures) costs lose against a choice of (draws,) costs."""
    return [
        rival_of(name, weights, costs[:, place], best_costs)
        for place, (name, weights) in enumerate(mixtures.items())
    ]


def _regret(question: Question, anchors: Array, spread: Array, best: Array) -> float:
    """Return the mean over draws of a mixture's cost above the draw's least."""
    costs = question.costs(best[None], anchors)[:, 0]
    least = np.minimum(question.costs(spread, anchors).min(axis=1), costs)
    return float(np.mean(costs - least))


def spread_of(question: Question, most: int = _SPREAD) -> Array:
    """Return (n, sources) allowed mixtures all over the simplex, about `most` of them."""
    sources = question.forecast.sources
    points = simplex_points(len(sources), 1e-3, most=most)
    allowed = question.limits.excess(points, sources) <= 0
    if allowed.any():
        return points[allowed]
    return points[[int(question.limits.excess(points, sources).argmin())]]


def _neighbours(question: Question, best: Array) -> Array:
    """Return (n, sources) allowed mixtures around a choice, where an even spread of many sources is thin."""
    rng, sources = np.random.default_rng(0), question.forecast.sources
    radii = np.geomspace(_NEAR, _FAR, _SPREAD)[:, None]
    points = best * np.exp(radii * rng.standard_normal((_SPREAD, len(best))))
    points /= points.sum(axis=1, keepdims=True)
    return points[question.limits.excess(points, sources) <= 0]


def _best(question: Question, anchors: Array) -> Array:
    sources = question.forecast.sources
    count = len(sources)
    least = min([1e-3, *(question.limits.least.get(name, 1e-3) for name in sources)])

    def cost(points: Array) -> Array:
        flat = points.reshape(-1, count)
        mean = question.costs(flat, anchors).mean(axis=0) + question.limits.penalty(flat, sources)
        uneven = np.sum(flat * np.log(np.maximum(flat, 1e-12) * count), axis=-1)
        return np.asarray((mean + _TIE * uneven).reshape(points.shape[:-1]))

    best, _ = minimise_on_simplex(cost, num_tasks=count, count=1, least=least)
    return np.asarray(best[0])


def _free_rule(question: Question, rivals: list[Rival]) -> str:
    """Return the best free rule that the limits allow, if it costs no more than noise above the choice."""
    allowed = _allowed(question, rivals)
    free = [rival for rival, good in zip(rivals, allowed, strict=True) if rival.free and good]
    best = min(free, key=lambda rival: rival.loss, default=None)
    return best.name if best is not None and best.loss <= _NOISE * best.error else ""


def _allowed(question: Question, rivals: list[Rival]) -> NDArray[np.bool_]:
    """Return whether each mixture keeps the limits."""
    sources = question.forecast.sources
    points = np.array([[rival.weights[name] for name in sources] for rival in rivals])
    return np.asarray(question.limits.excess(points, sources) <= _ROUNDING)


def _ranges(question: Question, anchors: Array, best: Array, amount: float) -> dict[str, tuple[float, float]]:
    """Return the weights of each source that cost at most `amount` more, the others in proportion."""
    ranges, steps = {}, np.linspace(0.0, 1.0, _STEPS + 1)[1:-1]
    least = float(question.costs(best[None], anchors).mean())
    for place, name in enumerate(question.forecast.sources):
        weights = np.unique(np.append(steps, best[place]))
        points = _moved(best, place, weights)
        extra = question.costs(points, anchors).mean(axis=0) - least
        cheap = (extra <= amount) & (question.limits.excess(points, question.forecast.sources) <= _ROUNDING)
        ranges[name] = _stretch(weights, cheap, int(np.searchsorted(weights, best[place])))
    return ranges


def _stretch(weights: Array, cheap: NDArray[np.bool_], start: int) -> tuple[float, float]:
    """Return the ends of the unbroken stretch of cheap weights around one of them."""
    dear = np.flatnonzero(~cheap & (np.arange(len(weights)) != start))
    below, above = dear[dear < start], dear[dear > start]
    low = below.max() + 1 if len(below) else 0
    high = above.min() - 1 if len(above) else len(weights) - 1
    return float(weights[low]), float(weights[high])


def _moved(best: Array, place: int, weights: Array) -> Array:
    """Return mixtures with other weights of one source, the others kept in proportion."""
    rest = np.delete(best, place)
    total = rest.sum()
    shares = rest / total if total > 0 else np.full(len(rest), 1.0 / max(len(rest), 1))
    return np.insert((1.0 - weights)[:, None] * shares, place, weights, axis=1)
