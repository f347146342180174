"""How far parameters scatter over refits."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mnmt_laws.arrays import Array


def deviation(draws: xr.Dataset) -> xr.Dataset:
    """The standard deviation of each variable over `draw`; NaN without refits."""
    if not draws.sizes["draw"]:
        return _unknown(draws)
    return draws.std("draw", skipna=False, keep_attrs=True)


def central_interval(draws: xr.Dataset, level: float) -> xr.Dataset:
    """The central interval of each variable over `draw`, along `bound` (lower, upper); NaN without refits.

    Raises:
        ValueError: If `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, but is {level}.")
    if not draws.sizes["draw"]:
        return _unknown(draws).expand_dims(bound=["lower", "upper"])
    tail = (1 - level) / 2
    quantiles = draws.quantile([tail, 1 - tail], "draw", skipna=False, keep_attrs=True)
    return quantiles.rename(quantile="bound").assign_coords(bound=["lower", "upper"])


def _unknown(draws: xr.Dataset) -> xr.Dataset:
    """NaN in the shape of one draw; the sum over none has that shape."""
    return xr.full_like(draws.sum("draw", keep_attrs=True), np.nan, dtype=float)


def bounds_of(draws: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Ends of the central interval of values over their first axis; NaN where there are none."""
    if not len(draws):
        unknown = np.full(draws.shape[1:], np.nan)
        return unknown, unknown
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    return low, high
