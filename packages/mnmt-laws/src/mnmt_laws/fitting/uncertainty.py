"""The uncertainty of a fit: refits to copies of the data, and their spread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError

QUANTILE: Literal["weibull"] = "weibull"
"""The quantiles of B refits: the p-quantile is at place p (B + 1) of the sorted refits.

Then one more refit lies inside with the stated probability; numpy's default would give 93% for 95% of 100.
"""

MOST_REFITS = 10**5

Copy = tuple[Array, Array]
"""(n,) values and (n,) importance of each observation in the objective."""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Normal errors about a law, common to all tasks."""

    sd: float
    """On the objective's scale of residuals."""

    freedom: float
    """Degrees of freedom that it was estimated with."""


@dataclass(frozen=True, kw_only=True)
class FittedTask:
    """One task's fit, the input of an uncertainty method."""

    values: Array
    """(n,) observed."""

    predicted: Array
    """(n,)"""

    leverage: Array
    """(n,) the influence of each observation on its own prediction, in [0, 1]."""

    log: bool
    """Whether residuals are differences of logarithms."""

    num_parameters: int

    run: NDArray[np.int64]
    """(n,) number of the run each observation came from, the same in every task."""

    num_runs: int

    task: int
    """Number of the task, so that tasks do not share their noise."""

    noise: Noise | None = None
    """The errors about the law, under weak priors."""

    @property
    def degrees_of_freedom(self) -> int:
        """Observations beyond the number of parameters."""
        return len(self.values) - self.num_parameters


class Uncertainty(Protocol):
    """A method that copies the data so that refits scatter like estimates from repeated studies."""

    @property
    def refits(self) -> int:
        """Number of copies; 0 leaves the uncertainty unknown."""

    def copies(self, fitted: FittedTask) -> Iterator[Copy]:
        """Yield the copies of one task."""

    def describe(self) -> str:
        """Return the method in a phrase."""


@dataclass(frozen=True, kw_only=True)
class SeededRefits:
    """The number of refits of a method, and their seed."""

    refits: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        refits: object = self.refits
        if isinstance(refits, bool) or not isinstance(refits, Integral):
            raise TypeError(f"`refits` must be a whole number, such as 200, but is {refits!r}.")
        if not 0 <= self.refits <= MOST_REFITS:
            raise ArgumentError(f"`refits` must be from 0 to {MOST_REFITS:,}, but is {self.refits}.")


@dataclass(frozen=True, kw_only=True)
class Perturbation(SeededRefits):
    """Refits with i.i.d. Gaussian noise on every value (Fernandes et al. 2023, sec. 3.2).

    It shows how well the design of a study determines a parameter under the stated noise; its intervals cover
    the truth only if the real noise is the same.
    """

    share: float = 0.01
    """Standard deviation of the noise, as a share of each value."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share <= 0:
            raise ArgumentError(f"`share` must be above 0, but is {self.share}.")

    def copies(self, fitted: FittedTask) -> Iterator[Copy]:
        """Yield the observed values with noise."""
        rng = np.random.default_rng([self.seed, fitted.task])
        ones = np.ones(len(fitted.values))
        for _ in range(self.refits):
            yield fitted.values * (1.0 + self.share * rng.standard_normal(len(ones))), ones

    def describe(self) -> str:
        """Return the method in a phrase."""
        return f"{self.refits} refits after {self.share:.2g} relative noise on every value"


@dataclass(frozen=True, kw_only=True)
class ResidualBootstrap(SeededRefits):
    """Refits to the fitted values plus resampled residuals (Davison and Hinkley 1997, sec. 6.2.3).

    Residuals are multiplied by 1/√(1 - leverage), since a fit lies nearer to its data than the truth does,
    and those of each copy by √(ν/χ²_ν), since ν degrees of freedom determine the noise only roughly.
    """

    def copies(self, fitted: FittedTask) -> Iterator[Copy]:
        """Yield fitted values with resampled residuals; NaN without degrees of freedom."""
        if fitted.noise is not None:
            yield from self._normal_copies(fitted, fitted.noise)
            return
        rng = np.random.default_rng([self.seed, fitted.task])
        residuals, freedom = modified_residuals(fitted), fitted.degrees_of_freedom
        ones = np.ones(len(residuals))
        for _ in range(self.refits):
            size = np.sqrt(freedom / rng.chisquare(freedom)) if freedom > 0 else np.nan
            noise = size * residuals[rng.integers(len(residuals), size=len(residuals))]
            values = fitted.predicted * np.exp(noise) if fitted.log else fitted.predicted + noise
            yield values, ones

    def _normal_copies(self, fitted: FittedTask, noise: Noise) -> Iterator[Copy]:
        """Yield observed values with normal errors: few residuals are no sample of the noise."""
        rng = np.random.default_rng([self.seed, fitted.task])
        ones = np.ones(len(fitted.values))
        for _ in range(self.refits):
            sd = noise.sd * np.sqrt(noise.freedom / rng.chisquare(noise.freedom))
            errors = sd * rng.standard_normal(len(ones))
            yield fitted.values * np.exp(errors) if fitted.log else fitted.values + errors, ones

    def describe(self) -> str:
        """Return the method in a phrase."""
        return f"{self.refits} refits to resampled residuals"


@dataclass(frozen=True, kw_only=True)
class ClusterBootstrap(SeededRefits):
    """Refits with a random importance for each run (the Bayesian bootstrap of Rubin 1981, by cluster).

    All measurements of one run, on all tasks and test sets, get the same weight, which accounts for their
    shared errors. Exponential weights leave no run out, so every weight and size stays represented.
    """

    def copies(self, fitted: FittedTask) -> Iterator[Copy]:
        """Yield the observed values with a random weight for each run, the same in every task."""
        rng = np.random.default_rng(self.seed)
        for _ in range(self.refits):
            yield fitted.values, rng.standard_exponential(fitted.num_runs)[fitted.run]

    def describe(self) -> str:
        """Return the method in a phrase."""
        return f"{self.refits} refits with random weights of the runs"


def modified_residuals(fitted: FittedTask) -> Array:
    """Return (n,) centred residuals, corrected for the pull of each observation on its own prediction."""
    if fitted.degrees_of_freedom <= 0:
        return np.full(len(fitted.values), np.nan)
    if fitted.log:
        residuals = np.log(fitted.values) - np.log(fitted.predicted)
    else:
        residuals = fitted.values - fitted.predicted
    scaled = residuals / np.sqrt(np.maximum(1.0 - fitted.leverage, 1.0 / len(residuals)))
    centred: Array = scaled - scaled.mean()
    return centred


def deviation(draws: xr.Dataset) -> xr.Dataset:
    """Return the standard deviation of each variable over `draw`; NaN without refits."""
    if not draws.sizes["draw"]:
        return _unknown(draws)
    return draws.std("draw", skipna=False, keep_attrs=True)


def central_interval(draws: xr.Dataset, level: float) -> xr.Dataset:
    """Return each variable's central interval over `draw`, along `bound` (lower, upper); NaN without refits.

    Raises:
        ValueError: If `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ArgumentError(f"`level` must be between 0 and 1, but is {level}.")
    if not draws.sizes["draw"]:
        return _unknown(draws).expand_dims(bound=["lower", "upper"])
    tail = (1 - level) / 2
    quantiles = draws.quantile([tail, 1 - tail], "draw", method=QUANTILE, skipna=False, keep_attrs=True)
    return quantiles.rename(quantile="bound").assign_coords(bound=["lower", "upper"])


def _unknown(draws: xr.Dataset) -> xr.Dataset:
    """Return NaN in the shape of one draw; there may be no draw to copy, so a sum gives the shape."""
    return xr.full_like(draws.sum("draw", keep_attrs=True), np.nan, dtype=float)


def bounds_of(draws: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Return the ends of the central interval over the first axis; NaN without values."""
    if not len(draws):
        unknown = np.full(draws.shape[1:], np.nan)
        return unknown, unknown
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0, method=QUANTILE)
    return low, high
