"""Runs that could be trained next, and their cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from mnmt_laws.answers.arguments import check_number, check_tasks
from mnmt_laws.answers.mixtures.budget import FLOPS_PER_TOKEN_PARAMETER
from mnmt_laws.answers.mixtures.simplex import simplex_points
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.forecasts.forecast import Forecast
from mnmt_laws.forecasts.target import NEAR

_MAX_MIXTURES = 60
_MAX_VALUES = {"size": 8, "tokens": 4}


class CandidateRun(NamedTuple):
    """A run that could be trained."""

    size: float | None
    """N, parameters; None for a law without size."""

    mixture: Mapping[str, float]
    """Weights of the sources."""

    tokens: float | None = None
    """D, tokens of all tasks; None for a law without length."""

    @property
    def arguments(self) -> tuple[float, ...]:
        """Size and tokens, without those that the law lacks; a cost is computed from them."""
        return tuple(value for value in (self.size, self.tokens) if value is not None)


def as_candidate(
    forecast: Forecast, option: CandidateRun | tuple[float, Mapping[str, float]]
) -> CandidateRun:
    """Return a size, a mixture and perhaps tokens as a candidate, checked against the forecast.

    Raises:
        ArgumentError: If a number is missing or out of range, or the mixture names an unknown source.
    """
    candidate = CandidateRun(*option)
    check_tasks("candidates", candidate.mixture, forecast.sources)
    for name in ("size", "tokens"):
        value = getattr(candidate, name)
        if value is not None:
            check_number(name, value)
        elif getattr(forecast.target, name) is not None:
            raise ArgumentError(f"`candidates` must hold `{name}`, since the table's models differ in it.")
    return candidate


def default_candidates(forecast: Forecast, sizes: Sequence[float] = ()) -> list[CandidateRun]:
    """Return runs of the sizes and lengths observed, of larger ones up to the target's, and of mixtures.

    Mixtures are those observed and those midway between them; of three sources or more, a spread. Models that
    were trained are left out.

    Args:
        forecast: The forecast.
        sizes: Sizes that can be built; by default any.
    """
    rows = forecast.observations.rows_to_fit(zero_shot=True)
    options = [
        CandidateRun(size, mixture, tokens)
        for size in _values(forecast, "size", sizes)
        for tokens in _values(forecast, "tokens")
        for mixture in _mixtures(forecast)
    ]
    return [option for option in options if not _is_trained(option, rows)]


def _values(forecast: Forecast, name: str, built: Sequence[float] = ()) -> list[float] | list[None]:
    """Return some of the observed values of a predictor, and larger ones up to the target's."""
    target = getattr(forecast.target, name)
    if target is None:
        return [None]
    if name == "tokens" and not forecast.knows_length:
        return [target]  # a form that does not know length would take a short run for a long one
    rows = forecast.observations.rows_to_fit(zero_shot=True)
    observed = _levels(rows[name].dropna().to_numpy(float))
    count = min(len(observed), _MAX_VALUES[name])
    spread = observed[np.unique(np.linspace(0, len(observed) - 1, count).round().astype(int))]
    larger = np.array(built) if built else observed[-1] * math.sqrt(2.0) ** np.arange(1, 3)
    beyond = larger[(larger > observed[-1] * NEAR) & (larger <= target * NEAR)]
    return [*spread.tolist(), *beyond.tolist()]


def _levels(values: Array) -> Array:
    """Return the distinct values, of which those within a factor of 1.2 count as one, the greatest."""
    ordered = np.unique(values)
    last = np.append(ordered[1:] > NEAR * ordered[:-1], True)
    return np.asarray(ordered[last])


def _is_trained(option: CandidateRun, rows: pd.DataFrame) -> bool:
    """Return whether a run of this size, length and mixture is among some rows."""
    task, weight = next(iter(option.mixture.items()))
    near = rows["task"].eq(task) & np.isclose(rows["weight"], weight, atol=1e-3)
    for name, tolerance in (("size", 1e-3), ("tokens", NEAR - 1)):
        value = getattr(option, name)
        if value is not None:
            near &= np.isclose(rows[name], value, rtol=tolerance)
    return bool(near.any()) and len(option.mixture) <= 2  # of more sources one weight does not tell


def _mixtures(forecast: Forecast) -> list[dict[str, float]]:
    """Return the mixtures observed and those midway between them; for three sources or more, a spread."""
    sources = forecast.sources
    if len(sources) > 2:
        points = simplex_points(len(sources), min(0.02, 0.5 / len(sources)))
        return [_named(sources, row) for row in points[:: max(1, len(points) // _MAX_MIXTURES)]]
    rows = forecast.observations.rows_to_fit(zero_shot=True)
    shares = rows["weight"].where(rows["task"] == sources[0], 1 - rows["weight"])
    observed = np.unique(shares.round(6))
    midway = (observed[:-1] + observed[1:]) / 2
    weights = np.unique(np.concatenate([observed, midway]).round(4))
    if len(sources) == 1:
        return [{sources[0]: float(share)} for share in weights if share > 0]
    return [_named(sources, np.array([share, 1 - share])) for share in weights]


def _named(sources: list[str], weights: Array) -> dict[str, float]:
    return {source: float(weight) for source, weight in zip(sources, weights, strict=True) if weight > 0}


def cost_unit(forecast: Forecast) -> str:
    """Return the unit of `cost_of_runs`, by what the table has: FLOPs, tokens, parameters, or runs."""
    rows = forecast.observations.frame
    if forecast.target.size is None:
        return "tokens" if forecast.target.tokens is not None else "runs"
    known = rows["flops"].gt(0).any() or rows["tokens"].gt(0).any()
    return "FLOPs" if known else "parameters"


def cost_of_runs(forecast: Forecast) -> Callable[..., float]:
    """Return the FLOPs of a run by its size, and by its tokens where lengths vary.

    With tokens it is 6 N D, with the table's median of FLOPs / (N D) in place of 6 if known. Without tokens
    it is a power of size fitted to the table's `flops`, else 6 N times the median `tokens`, else N.
    """
    rows = forecast.observations.frame
    costed = rows[rows["flops"].gt(0)]
    if forecast.target.tokens is not None:
        rate = float((costed["flops"] / costed["size"] / costed["tokens"]).median())
        scale = rate if rate > 0 else FLOPS_PER_TOKEN_PARAMETER
        return float if forecast.target.size is None else lambda size, tokens: float(scale * size * tokens)
    if forecast.target.size is None:
        return lambda: 1.0
    if costed["size"].nunique() > 1:
        slope, start = np.polyfit(
            np.log(costed["size"].to_numpy(float)), np.log(costed["flops"].to_numpy(float)), 1
        )
        return lambda size: float(np.exp(start + slope * np.log(size)))
    tokens = float(rows["tokens"].median())
    each = FLOPS_PER_TOKEN_PARAMETER * tokens if tokens > 0 else 1.0
    return lambda size: float(each * size)
