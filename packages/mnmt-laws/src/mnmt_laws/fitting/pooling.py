"""Partial pooling: weak priors whose means the tasks share, for fits to few runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.uncertainty import Noise
from mnmt_laws.laws.prior import Prior
from mnmt_laws.solver.design_matrix import DesignMatrix, ParameterBlock
from mnmt_laws.solver.objective import Objective
from mnmt_laws.solver.penalty import Penalty
from mnmt_laws.solver.search import find_minima, refit

_ROUNDS = 3
_USUAL_SCATTER, _USUAL_WEIGHT = 0.015, 2.0  # of runs about a law, relative; counts as two residuals


@dataclass(frozen=True, kw_only=True)
class CommonMean:
    """The mean that one parameter has over tasks, on its prior's scale."""

    prior: Prior

    value: float

    sd: float
    """Standard deviation that the data leave it."""

    def __str__(self) -> str:
        """Return the mean in the parameter's own unit, and how far tasks lie about it."""
        between = self.prior.between
        if self.prior.scale == "log":
            return f"{np.exp(self.value):.2g} (within a factor of {np.exp(between):.2g})"
        return f"{self.value:.2g} ± {between:.2g}"


@dataclass(frozen=True, kw_only=True)
class Pool:
    """What the fits of all tasks share under weak priors."""

    noise: Noise

    means: Mapping[str, CommonMean]
    """By the parameter's name."""

    def describe(self) -> str:
        """Return the common means of all parameters that have one, in a phrase."""
        return ", ".join(f"{name} {mean}" for name, mean in self.means.items())

    def penalty(
        self, design: DesignMatrix, shared: Array | float = 0.0, separate: Array | float = 0.0
    ) -> Penalty:
        """Return the penalty of a fit, or of many whose centres scatter.

        Args:
            design: The law over a part of a task.
            shared: (m, P) standard normal deviates of the common means.
            separate: (m, P) standard normal deviates of the task about them.
        """
        mean, spread, within, strength = (np.zeros(design.width) for _ in range(4))
        log = np.zeros(design.width, dtype=bool)
        for block, prior in _priors(design):
            unit, columns = _unit(prior, design), block.columns
            known = self.means.get(block.parameter.name)
            mean[columns] = unit * (prior.mean if known is None else known.value)
            spread[columns] = 0.0 if known is None else unit * known.sd
            within[columns] = unit * prior.of_task
            strength[columns] = (self.noise.sd / (unit * prior.of_task)) ** 2
            log[columns] = prior.scale == "log"
        centre = np.atleast_2d(mean + spread * shared + within * separate)
        return Penalty(centre=centre, strength=strength, log=log)


def draw_deviates(
    design: DesignMatrix, seed: int, *, task: int, part: int, count: int
) -> tuple[Array, Array]:
    """Return (count, P) standard normal deviates of the common means, and of the task about them.

    The former are the same in all tasks, and for all values of a parameter.
    """
    places = np.repeat(np.arange(len(design.blocks)), [len(block.labels) for block in design.blocks])
    shared = np.random.default_rng([seed, 1]).standard_normal((count, len(design.blocks)))
    separate = np.random.default_rng([seed, 2, task, part]).standard_normal((count, design.width))
    return shared[:, places], separate


def _priors(design: DesignMatrix) -> Iterator[tuple[ParameterBlock, Prior]]:
    """Yield the parameters with a weak prior; limits and factors of rising metrics have none."""
    for block in design.blocks:
        prior = block.parameter.weak_prior
        if prior is not None and not (prior.scale == "loss" and design.sample.rising):
            yield block, prior


def _unit(prior: Prior, design: DesignMatrix) -> float:
    return float(design.sample.values[0].min()) if prior.scale == "loss" else 1.0


def pool_designs(designs: Sequence[DesignMatrix], full: Sequence[DesignMatrix], objective: Objective) -> Pool:
    """Return the noise and the common means of some fits, by empirical Bayes.

    In turn the fits are found under the present means, and noise and means from the fits. For a law linear in
    its parameters one turn gives the means of highest posterior density.

    Args:
        designs: The law over one observation for each model, for every part of every task.
        full: The same over all observations.
        objective: A sum of squares.
    """
    scale = 1.0 if objective.log else float(np.median(np.concatenate([d.sample.values[0] for d in full])))
    usual = Noise(sd=_USUAL_SCATTER * scale, freedom=_USUAL_WEIGHT)
    means = {
        block.parameter.name: CommonMean(prior=prior, value=prior.mean, sd=prior.sd)
        for design in designs for block, prior in _priors(design) if prior.between
    }  # fmt: skip
    pool = Pool(noise=usual, means=means)
    penalised = [design.replace_penalty(pool.penalty(design)) for design in designs]
    minima = [find_minima(design, objective) for design in penalised]
    vectors = [lowest.vector for lowest, *_ in minima]
    for _ in range(_ROUNDS):
        spreads = [
            _spread(design, objective, vector) for design, vector in zip(penalised, vectors, strict=True)
        ]
        noise = _noise(full, vectors, spreads, objective, usual)
        pool = Pool(noise=noise, means=_means(penalised, vectors, spreads, pool))
        penalised = [design.replace_penalty(pool.penalty(design)) for design in designs]
        ends = [refit(design, objective, starts) for design, starts in zip(penalised, minima, strict=True)]
        vectors = [end.vectors[0] for end in ends]
    return pool


def num_effective(design: DesignMatrix, objective: Objective, vector: Array) -> float:
    """Return the number of parameters (P,) that the data determine under the design's penalty.

    It is the trace of the hat matrix: a parameter counts by the data's share of its posterior precision.
    """
    return _spread(design, objective, vector).num_effective


@dataclass(frozen=True, kw_only=True)
class _Spread:
    """The posterior about one estimate."""

    free: NDArray[np.intp]
    """The columns that are not at a bound."""

    shrinkage: Array
    """(P,) the prior's share of each parameter's posterior precision; 1 at a bound."""

    num_effective: float
    """See `num_effective`."""


def _spread(design: DesignMatrix, objective: Objective, vector: Array) -> _Spread:
    penalty = design.penalty
    assert penalty is not None
    low, high = (bound[0] for bound in design.bounds({}))
    near = 1e-6 * np.maximum(1.0, np.abs(vector))
    free = np.flatnonzero((vector > low + near) & (vector < high - near))
    predicted, jacobian = design.jacobian(vector[None])
    slopes = jacobian[0][free] * objective.slope(predicted) * np.sqrt(design.sample.importance[:1])
    # In units of t / s the prior's precision is 1, and the data's is H; strength 0 leaves the data alone.
    prior = penalty.strength[free] * penalty.slope(vector)[free] ** 2
    unit = np.sqrt(np.where(prior > 0, prior, np.sum(slopes**2, axis=1) + 1e-300))
    information = (slopes / unit[:, None]) @ (slopes / unit[:, None]).T
    posterior = np.linalg.inv(information + np.diag(np.where(prior > 0, 1.0, 1e-9)))
    shrinkage = np.ones(len(vector))
    shrinkage[free] = np.minimum(np.diag(posterior), 1.0)
    return _Spread(free=free, shrinkage=shrinkage, num_effective=float(np.trace(posterior @ information)))


def _noise(
    full: Sequence[DesignMatrix],
    vectors: Sequence[Array],
    spreads: Sequence[_Spread],
    objective: Objective,
    usual: Noise,
) -> Noise:
    """Return the residuals' scatter; the usual one counts as a few residuals."""
    residuals = [
        objective.residual(design.sample.values[0], design.predict(vector))
        for design, vector in zip(full, vectors, strict=True)
    ]
    squares = sum(float(values @ values) for values in residuals)
    count = sum(len(values) for values in residuals) - sum(spread.num_effective for spread in spreads)
    freedom = max(count, 0.0) + usual.freedom
    return Noise(sd=float(np.sqrt((squares + usual.freedom * usual.sd**2) / freedom)), freedom=freedom)


def _means(
    designs: Sequence[DesignMatrix], vectors: Sequence[Array], spreads: Sequence[_Spread], pool: Pool
) -> dict[str, CommonMean]:
    """Return Newton's step of every common mean.

    A task's estimate θ̂ under the prior N(μ, τ²) has the posterior variance V = κ τ². The data alone would say
    that θ lies where w (θ - μ) = (θ̂ - μ) / τ², with the precision w = (1 - κ) / τ² about the common mean.
    """
    pulls = dict.fromkeys(pool.means, 0.0)
    weights = dict.fromkeys(pool.means, 0.0)
    for design, vector, spread in zip(designs, vectors, spreads, strict=True):
        assert design.penalty is not None
        measured = design.penalty.measured(vector)
        for block, prior in _priors(design):
            name = block.parameter.name
            if name in pool.means:
                columns = [j for j in spread.free if block.columns.start <= j < block.columns.stop]
                pulls[name] += float(np.sum(measured[columns] - pool.means[name].value)) / prior.between**2
                weights[name] += float(np.sum(1.0 - spread.shrinkage[columns])) / prior.between**2
    return {name: _step(mean, pulls[name], weights[name]) for name, mean in pool.means.items()}


def _step(mean: CommonMean, pull: float, weight: float) -> CommonMean:
    precision = 1.0 / mean.prior.sd**2 + weight
    step = ((mean.prior.mean - mean.value) / mean.prior.sd**2 + pull) / precision
    return replace(mean, value=mean.value + step, sd=float(precision**-0.5))
