"""Read the cells of an xarray dataset as the rows of a run table."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.errors import TableError
from mnmt_laws.tables.columns import KINDS, closest
from mnmt_laws.tables.row_location import RowLocator

DIMS = ("task", "weight", "size")
_DESCRIBED_BY_ATTRS = ("metric", "testset", "architecture")


def read_cells(dataset: xr.Dataset) -> tuple[pd.DataFrame, RowLocator]:
    """Return the measured cells of a dataset as a run table, one for each cell, and how to name them.

    The values are in the variable `value`, whose metric is named by a coordinate or attribute `metric`, or
    else in all variables that are not named like a column; these are named like their metric. Coordinates
    and variables that are named like columns are columns. NaN cells are left out.

    Raises:
        TableError: If a dimension or its labels are missing, or nothing was measured.
    """
    source = str(dataset.attrs.get("source") or "dataset")
    metrics = _metrics(dataset, source)
    frames = [_cells(dataset, name, metric, source) for name, metric in metrics.items()]
    frame = pd.concat(frames, ignore_index=True)
    if frame.empty:
        raise TableError(f"{source}: every cell is NaN; give the values that were measured.")
    dims = [str(dim) for dim in dataset[next(iter(metrics))].dims if dim in KINDS and dim not in DIMS]
    return frame, RowLocator(source=source, dims=(*DIMS, *(dim for dim in dims if dim != "metric")))


def _metrics(dataset: xr.Dataset, source: str) -> dict[Hashable, str | None]:
    """Return the variables that hold values, and the metric of each; None where a coordinate names it."""
    if "value" in dataset:
        if "metric" in dataset.variables:
            return {"value": None}
        named = dataset["value"].attrs.get("metric") or dataset.attrs.get("metric")
        if not named:
            raise TableError(f"{source}: `value` does not say of which metric; set dataset.attrs['metric'].")
        return {"value": str(named)}
    metrics: dict[Hashable, str | None] = {
        name: str(name)
        for name, variable in dataset.data_vars.items()
        if name not in KINDS and np.issubdtype(variable.dtype, np.number)
    }
    if not metrics:
        raise TableError(
            f"{source}: no variable of a metric; give it one over {', '.join(DIMS)}, such as `loss`."
        )
    return metrics


def _cells(dataset: xr.Dataset, name: Hashable, metric: str | None, source: str) -> pd.DataFrame:
    variable = dataset[name]
    _check_dims(dataset, variable, source)
    columns = {
        str(column): dataset[column]
        for column in dataset.variables
        if column in KINDS and column != name and set(dataset[column].dims) <= set(variable.dims)
    }
    measured = variable.notnull().to_numpy().ravel()
    cells = pd.DataFrame({"value": variable.to_numpy().ravel()[measured]})
    for column, labels in columns.items():
        cells[column] = labels.broadcast_like(variable).transpose(*variable.dims).to_numpy().ravel()[measured]
    for dim in variable.dims:
        if dim in KINDS and dim not in columns:
            cells[str(dim)] = np.indices(variable.shape)[variable.get_axis_num(dim)].ravel()[measured]
    for label in _DESCRIBED_BY_ATTRS:
        if label not in cells and label in dataset.attrs:
            cells[label] = str(dataset.attrs[label])
    return cells if metric is None else cells.assign(metric=metric)


def _check_dims(dataset: xr.Dataset, variable: xr.DataArray, source: str) -> None:
    known = [str(name) for name in dataset.variables if set(dataset[name].dims) <= set(variable.dims)]
    unnamed = [str(dim) for dim in variable.dims if dim not in dataset.variables]
    for dim in DIMS:
        if dim in unnamed:
            raise TableError(
                f"{source}: dimension `{dim}` has no labels; add them: dataset.assign_coords({dim}=[...])."
            )
        if dim not in known:
            strange = [str(other) for other in variable.dims if other not in KINDS]
            close = strange[0] if len(strange) == 1 else closest(dim, strange)
            remedy = f"dataset.rename({close}='{dim}')" if close else f"dataset.expand_dims({dim}=[...])"
            over = ", ".join(map(str, variable.dims))
            raise TableError(
                f"{source}: `{variable.name}` over ({over}) has no `{dim}`; add it with {remedy}."
            )
    for dim in map(str, variable.dims):
        if dim not in KINDS and dim not in unnamed:
            raise TableError(
                f"{source}: dimension `{dim}` of `{variable.name}` is no column of a run table; rename it, "
                f"or choose from it with dataset.sel({dim}=...)."
            )
