"""Observations as an xarray dataset over task, weight and size."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.errors import TableError
from mnmt_laws.tables.columns import KINDS, LABELS, NUMBERS
from mnmt_laws.tables.lengths import ROUNDING
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.readers import DIMS
from mnmt_laws.tables.row_location import RowLocator
from mnmt_laws.tables.source import TableSource, observe

_SAME_IN_CELL = ("role", "mixture", "architecture", "encoder_size", "decoder_size", "tokens")
_MEASURED = ("flops", "irreducible", "step")


def to_dataset(source: TableSource | Observations) -> xr.Dataset:
    """Return observations as a grid over task, weight and size.

    Args:
        source: Anything that `observe` takes.

    Returns:
        `value` (mean over seeds, in the metric's unit; NaN where nothing was measured), `count` (measurements
        in the mean), `role`, and whatever other columns of the run table hold anything, numbers averaged like
        `value`. `read_table` reads it back.

    Raises:
        TableError: If the source cannot be read, or the runs of a cell differ in more than their seed.
    """
    observations = observe(source)
    frame = observations.frame
    _check_cells(frame, observations.locator)
    cells = frame.groupby(list(DIMS), sort=True)
    table = cells["value"].agg(value="mean", count="size")
    for column in (name for name in (*LABELS, *NUMBERS) if name in (*_SAME_IN_CELL, *_MEASURED)):
        if column == "role" or _holds_anything(frame[column]):
            table[column] = cells[column].agg("first" if KINDS[column] == "text" else "mean")
    labels = {dim: np.unique(frame[dim].to_numpy(str if dim == "task" else float)) for dim in DIMS}
    grid = table.reindex(pd.MultiIndex.from_product(list(labels.values()), names=list(DIMS)))
    shape = [len(values) for values in labels.values()]
    variables = {name: (DIMS, _fill(grid[name]).reshape(shape)) for name in table.columns}
    return _add_attributes(xr.Dataset(variables, coords=labels), observations)


def _holds_anything(column: pd.Series) -> bool:
    return bool(column.ne("").any() if column.dtype == object else column.notna().any())


def _fill(column: pd.Series) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """Return the values of the cells; NaN, 0 or empty text where nothing was measured."""
    if column.name == "count":
        return column.fillna(0).to_numpy(np.int64)
    if KINDS[str(column.name)] == "text":
        return column.fillna("").to_numpy(str)
    return column.to_numpy(float)


def _check_cells(frame: pd.DataFrame, locator: RowLocator) -> None:
    for column in _SAME_IN_CELL:
        first = frame.groupby(list(DIMS))[column].transform("first")
        differs = ~(frame[column].eq(first) | (frame[column].isna() & first.isna()))
        if column == "tokens":
            differs &= ~((frame[column] - first).abs() <= ROUNDING * first.abs())
        if differs.any():
            second = int(differs.to_numpy().argmax())
            same = frame[list(DIMS)].eq(frame[list(DIMS)].iloc[second]).all(axis=1)
            pair = locator.name(frame, int(same.to_numpy().argmax()), second)
            raise TableError(
                f"{pair}: the same task, weight and size, but another `{column}`; a grid cannot hold "
                f"both, so leave one of them out."
            )


def _add_attributes(dataset: xr.Dataset, observations: Observations) -> xr.Dataset:
    """Set units on variables and coordinates, and provenance on the dataset."""
    units: dict[str, str] = {
        "value": observations.unit,
        "size": "parameters",
        "tokens": "tokens",
        "flops": "flops",
    }
    units |= {"encoder_size": "parameters", "decoder_size": "parameters", "irreducible": observations.unit}
    for name, variable in dataset.variables.items():
        if name in units:
            variable.attrs["units"] = units[str(name)]
        elif variable.dtype.kind in "if":
            variable.attrs["units"] = "1"
    dataset["value"].attrs["long_name"] = f"{observations.metric}, mean over seeds"
    return dataset.assign_attrs(
        metric=observations.metric,
        testset=observations.testset,
        source=observations.source,
        software=f"mnmt-laws {version('mnmt-laws')}",
    )
