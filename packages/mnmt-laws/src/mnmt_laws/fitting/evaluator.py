"""The columns a law needs, as arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.tables.mixture import mixture_weights
from mnmt_laws.tables.observations import Observations

_COLUMNS = ("size", "encoder_size", "decoder_size", "tokens", "weight")


def predictors_of(
    rows: pd.DataFrame, names: tuple[str, ...], *, task: str, observations: Observations
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """(n,) arrays by name, and the task's partners where `partners` is asked for.

    Raises:
        TableError: If a column is missing or empty in some row, or not positive.
    """
    x = {name: _column(rows, name, observations) for name in names if name in _COLUMNS}
    if "partners" not in names:
        return x, ()
    tasks = sorted(observations.frame["task"].unique())
    weights = mixture_weights(rows, tasks, observations.source)
    partners = tuple(
        sorted(str(name) for name in weights.columns if name != task and weights[name].gt(0).any())
    )
    return {**x, "partners": partner_shares(weights[list(partners)].to_numpy(float))}, partners


def partner_shares(weights: Array) -> Array:
    """(n, K - 1) each partner's share of what a task leaves to the others; 0 where it leaves nothing."""
    rest = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, rest, out=np.zeros_like(weights), where=rest > 0))


def _column(rows: pd.DataFrame, name: str, observations: Observations) -> Array:
    values = rows[name].to_numpy(float)
    wrong = ~(values > 0)
    if wrong.any():
        where = observations.places.name(rows, int(wrong.argmax()))
        raise TableError(f"{where}: this law needs `{name}` above 0 in every row, but this one has none.")
    return values
