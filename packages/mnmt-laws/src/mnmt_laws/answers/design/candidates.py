"""Runs that could be trained next, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from mnmt_laws.answers.arguments import check_number, check_tasks
from mnmt_laws.answers.mixtures.best_mixture import FLOPS_PER_TOKEN_PARAMETER
from mnmt_laws.answers.mixtures.simplex import simplex_points
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit

_MAX_MIXTURES = 60
_MAX_VALUES = {"size": 8, "tokens": 4}


class CandidateRun(NamedTuple):
    """A run that could be trained."""

    size: float | None
    """N, parameters; None for a law without size."""

    mixture: Mapping[str, float]
    """Weights of the sources."""

    tokens: float | None = None
    """D, target tokens of all tasks; None for a law without length."""

    @property
    def arguments(self) -> tuple[float, ...]:
        """Size and tokens, without those that the law lacks; a cost is computed from them."""
        return tuple(value for value in (self.size, self.tokens) if value is not None)


def as_candidate(fit: LawFit, option: CandidateRun | tuple[float, Mapping[str, float]]) -> CandidateRun:
    """Return a size, a mixture and perhaps tokens as a candidate, checked against the law.

    Raises:
        ArgumentError: If a number is missing or out of range, or the mixture names an unknown source.
    """
    candidate = CandidateRun(*option)
    check_tasks("candidates", candidate.mixture, fit.sources)
    for name in ("size", "tokens"):
        value = getattr(candidate, name)
        if name in fit.law.predictors:
            if value is None:
                raise ArgumentError(f"`candidates` must hold `{name}`: the {fit.law.name} law needs it.")
            check_number(name, value)
        elif value is not None and name == "tokens":
            raise ArgumentError(f"`candidates` must hold no `tokens`: the {fit.law.name} law ignores them.")
    return candidate


def default_candidates(fit: LawFit) -> list[CandidateRun]:
    """Return the observed sizes, lengths and mixtures, twice the largest, and mixtures in between."""
    sizes, lengths = _values(fit, "size"), _values(fit, "tokens")
    mixtures = _mixtures(fit)
    return [
        CandidateRun(size, mixture, tokens) for size in sizes for tokens in lengths for mixture in mixtures
    ]


def _values(fit: LawFit, name: str) -> list[float] | list[None]:
    """Return some of the observed values of a predictor, and twice the largest."""
    if name not in fit.law.predictors:
        return [None]
    observed = np.unique(fit.rows[name].to_numpy(float))
    count = min(len(observed), _MAX_VALUES[name])
    spread = observed[np.unique(np.linspace(0, len(observed) - 1, count).round().astype(int))]
    return [*(float(value) for value in spread), 2.0 * float(observed[-1])]


def _mixtures(fit: LawFit) -> list[dict[str, float]]:
    """Return the mixtures observed and those midway between them; for three sources or more, a spread."""
    sources = fit.sources
    if len(sources) > 2:
        points = simplex_points(len(sources), min(0.02, 0.5 / len(sources)))
        return [_named(sources, row) for row in points[:: max(1, len(points) // _MAX_MIXTURES)]]
    rows = fit.rows
    shares = rows["weight"].where(rows["task"] == sources[0], 1 - rows["weight"])
    observed = np.unique(shares.round(6))
    midway = (observed[:-1] + observed[1:]) / 2
    weights = np.unique(np.concatenate([observed, midway]).round(4))
    if len(sources) == 1:
        return [{sources[0]: float(share)} for share in weights if share > 0]
    return [_named(sources, np.array([share, 1 - share])) for share in weights]


def _named(sources: list[str], weights: Array) -> dict[str, float]:
    return {source: float(weight) for source, weight in zip(sources, weights, strict=True) if weight > 0}


def cost_of_runs(fit: LawFit) -> Callable[..., float]:
    """Return the FLOPs of a run by its size, and by its tokens where the law knows them.

    With tokens it is 6 N D, with the table's median of FLOPs / (N D) in place of 6 if known. Without tokens
    it is a power of size fitted to the table's `flops`, else 6 N times the median `tokens`, else N.
    """
    rows = fit.observations.frame
    costed = rows[rows["flops"].gt(0)]
    if "tokens" in fit.law.predictors:
        rate = float((costed["flops"] / costed["size"] / costed["tokens"]).median())
        scale = rate if rate > 0 else FLOPS_PER_TOKEN_PARAMETER
        if "size" not in fit.law.predictors:
            return float
        return lambda size, tokens: float(scale * size * tokens)
    if "size" not in fit.law.predictors:
        return lambda: 1.0
    if costed["size"].nunique() > 1:
        slope, start = np.polyfit(
            np.log(costed["size"].to_numpy(float)), np.log(costed["flops"].to_numpy(float)), 1
        )
        return lambda size: float(np.exp(start + slope * np.log(size)))
    tokens = float(rows["tokens"].median())
    each = FLOPS_PER_TOKEN_PARAMETER * tokens if tokens > 0 else 1.0
    return lambda size: float(each * size)
