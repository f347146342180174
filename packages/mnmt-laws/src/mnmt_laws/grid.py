"""Run tables as labelled grids: a metric over task, weight and size."""

from __future__ import annotations

from collections.abc import Hashable
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.columns import KINDS, LABELS, NUMBERS
from mnmt_laws.errors import TableError
from mnmt_laws.places import Places
from mnmt_laws.spelling import closest

if TYPE_CHECKING:
    from mnmt_laws.observations import Observations

DIMS = ("task", "weight", "size")
_DESCRIBED_BY_ATTRS = ("metric", "testset", "architecture")
_SAME_IN_CELL = ("role", "mixture", "architecture", "encoder_size", "decoder_size", "tokens")
_MEASURED = ("flops", "irreducible", "step")
_ROUNDING = 0.01
"""How far, as a share, `tokens` of two seeds may differ and still be the same amount of data."""


def read_cells(dataset: xr.Dataset) -> tuple[pd.DataFrame, Places]:
    """The measured cells of a dataset as a run table, a row each, and how to name them.

    Metrics are all variables that are not named as a column is; or the variable `value`, whose metric stands
    in a coordinate `metric` or in the attributes. Coordinates and variables that are named as columns are
    columns. NaN cells are left out.

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
    return frame, Places(source=source, dims=(*DIMS, *(dim for dim in dims if dim != "metric")))


def _metrics(dataset: xr.Dataset, source: str) -> dict[Hashable, str | None]:
    """The variables that hold values, and the metric of each; None where a coordinate tells."""
    if "value" in dataset:
        if "metric" in dataset.variables:
            return {"value": None}
        named = dataset["value"].attrs.get("metric") or dataset.attrs.get("metric")
        if not named:
            raise TableError(f"{source}: `value` does not say of which metric; set dataset.attrs['metric'].")
        return {"value": str(named)}
    found: dict[Hashable, str | None] = {
        name: str(name)
        for name, variable in dataset.data_vars.items()
        if name not in KINDS and np.issubdtype(variable.dtype, np.number)
    }
    if not found:
        raise TableError(
            f"{source}: no variable of a metric; give it one over {', '.join(DIMS)}, such as `loss`."
        )
    return found


def _cells(dataset: xr.Dataset, name: Hashable, metric: str | None, source: str) -> pd.DataFrame:
    variable = dataset[name]
    _check_dims(dataset, variable, source)
    columns = {
        str(column): dataset[column]
        for column in dataset.variables
        if column in KINDS and column != name and set(dataset[column].dims) <= set(variable.dims)
    }
    kept = variable.notnull().to_numpy().ravel()
    cells = pd.DataFrame({"value": variable.to_numpy().ravel()[kept]})
    for column, labels in columns.items():
        cells[column] = labels.broadcast_like(variable).transpose(*variable.dims).to_numpy().ravel()[kept]
    for dim in variable.dims:
        if dim in KINDS and dim not in columns:
            cells[str(dim)] = np.indices(variable.shape)[variable.get_axis_num(dim)].ravel()[kept]
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


def to_dataset(observations: Observations) -> xr.Dataset:
    """Observations as a grid over task, weight and size.

    Returns:
        `value` (mean over seeds, in the metric's unit; NaN where nothing was measured), `count` (measurements
        in the mean), `role`, and whatever other columns of the run table hold anything, numbers averaged like
        `value`. `read_table` reads it back.

    Raises:
        TableError: If the runs of a cell differ in more than their seed.
    """
    frame = observations.frame
    _check_cells(frame, observations.places)
    cells = frame.groupby(list(DIMS), sort=True)
    table = cells["value"].agg(value="mean", count="size")
    for column in (name for name in (*LABELS, *NUMBERS) if name in (*_SAME_IN_CELL, *_MEASURED)):
        if column == "role" or _holds_anything(frame[column]):
            table[column] = cells[column].agg("first" if KINDS[column] == "text" else "mean")
    labels = {dim: np.unique(frame[dim].to_numpy(str if dim == "task" else float)) for dim in DIMS}
    grid = table.reindex(pd.MultiIndex.from_product(list(labels.values()), names=list(DIMS)))
    shape = [len(values) for values in labels.values()]
    variables = {name: (DIMS, _filled(grid[name]).reshape(shape)) for name in table.columns}
    return _described(xr.Dataset(variables, coords=labels), observations)


def _holds_anything(column: pd.Series) -> bool:
    return bool(column.ne("").any() if column.dtype == object else column.notna().any())


def _filled(column: pd.Series) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """What stands in the cells, with the type's nothing (NaN, 0, no text) where nothing was measured."""
    if column.name == "count":
        return column.fillna(0).to_numpy(np.int64)
    if KINDS[str(column.name)] == "text":
        return column.fillna("").to_numpy(str)
    return column.to_numpy(float)


def _check_cells(frame: pd.DataFrame, places: Places) -> None:
    for column in _SAME_IN_CELL:
        first = frame.groupby(list(DIMS))[column].transform("first")
        differs = ~(frame[column].eq(first) | (frame[column].isna() & first.isna()))
        if column == "tokens":
            differs &= ~((frame[column] - first).abs() <= _ROUNDING * first.abs())
        if differs.any():
            second = int(differs.to_numpy().argmax())
            same = frame[list(DIMS)].eq(frame[list(DIMS)].iloc[second]).all(axis=1)
            pair = places.name(frame, int(same.to_numpy().argmax()), second)
            raise TableError(
                f"{pair}: the same task, weight and size, but another `{column}`; a grid cannot hold "
                f"both, so leave one of them out."
            )


def _described(dataset: xr.Dataset, observations: Observations) -> xr.Dataset:
    """Units on variables and coordinates, provenance on the dataset."""
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
