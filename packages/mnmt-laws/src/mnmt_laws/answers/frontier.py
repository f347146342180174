"""The trade-off between tasks as their weights change (Fernandes et al. 2023, sec. 3.4)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.answers.decision.asked import Asked, forecast_for
from mnmt_laws.answers.mixtures.simplex import efficient, simplex_points
from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.forecasts.forecast import Forecast
from mnmt_laws.laws import LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource

_NUM_WEIGHTS = 97


def frontier(
    source: TableSource | Observations | LawFit | Forecast,
    *,
    size: float | None = None,
    tokens: float | None = None,
    law: LawName | Law | Literal["auto"] = "auto",
    refits: int = 200,
) -> xr.Dataset:
    """Predict every task's metric over the mixtures, at one size and training length.

    Args:
        source: A run table or anything that `observe` takes, a fit, or a forecast; of two sources or more.
        size: N, parameters; by default twice the largest fitted, or a larger one held out.
        tokens: D, tokens of all tasks; by default the longest fitted, where lengths differ.
        law: One law, or `auto` for the average over the laws and rulers that the table admits.
        refits: The number of draws.

    Returns:
        `value` (mean over the draws), `lower` and `upper` (their central 95%) over (task, point);
        `weight` over (source, point), and over task where the tasks are the sources; `efficient` over point,
        whether no other point is better on every task. Mixtures are evenly spread, those of two tasks over
        the weights observed.

    Raises:
        TableError: If the mixtures have one source, or no law that predicts mixtures can be fitted.
        ArgumentError: If an argument is out of range.
    """
    forecast, _ = forecast_for(source, Asked(size=size, tokens=tokens), law=law, refits=refits)
    points = _mixtures(forecast)
    draws = forecast.losses(points)
    low, high = bounds_of(draws)
    value, tasks = draws.mean(axis=0), forecast.tasks
    dims, sources = ("task", "point"), "task" if forecast.sources == tasks else "source"
    return xr.Dataset(
        {
            "value": (dims, value),
            "lower": (dims, low),
            "upper": (dims, high),
            "weight": ((sources, "point"), points.T),
            "efficient": ("point", efficient(forecast.sign * value)),
        },
        coords={"task": tasks} | ({} if sources == "task" else {"source": forecast.sources}),
        attrs={
            **{name: number for name, number in vars(forecast.target).items() if number is not None},
            "units": forecast.observations.unit,
            "long_name": forecast.observations.metric,
            "law": ", ".join(member.form.name for member in forecast.members),
        },
    )


def _mixtures(forecast: Forecast) -> Array:
    """Return (points, sources) mixtures, evenly spread."""
    if len(forecast.sources) < 2:
        raise TableError(
            f"{forecast.observations.source}: a frontier needs two tasks or more, but the table has "
            f"{forecast.sources[0]} only."
        )
    if forecast.sources != forecast.observations.tasks[:2]:
        return simplex_points(len(forecast.sources))
    first = np.linspace(*observed_range(forecast.observations), _NUM_WEIGHTS)
    return np.stack([first, 1.0 - first], axis=1)


def observed_range(observations: Observations) -> tuple[float, float]:
    """Return the least and the greatest share of the first task among mixtures of both tasks."""
    first, second = observations.tasks[:2]
    rows = observations.frame[observations.frame["weight"].between(0, 1, inclusive="neither")]
    shares = rows["weight"].where(rows["task"] == first, 1 - rows["weight"])
    if rows.empty:
        raise TableError(f"{observations.source}: no run mixes {first} and {second}; a frontier needs some.")
    return float(shares.min()), float(shares.max())


def observed_pairs(observations: Observations) -> pd.DataFrame:
    """Return both tasks' values of every model trained on the two, averaged over seeds.

    Returns:
        Columns `size`, `weight` (of the first task), `role` and one column for each task.
    """
    first, second = observations.tasks[:2]
    rows = observations.frame
    mixed = rows[rows["weight"].between(0, 1, inclusive="neither")]
    mixed = mixed.assign(share=mixed["weight"].where(mixed["task"] == first, 1 - mixed["weight"]).round(6))
    pairs = mixed.pivot_table(index=["size", "share", "role"], columns="task", values="value", aggfunc="mean")
    return pairs.dropna(subset=[first, second]).reset_index().rename(columns={"share": "weight"})
