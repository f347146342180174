"""Datasets as strict JSON, to the last bit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from mnmt_laws.fitting.documents import number_to_json


def dataset_to_json(dataset: xr.Dataset) -> dict[str, Any]:
    """Attributes, coordinates and variables; values flat in C order, NaN as null."""
    return {
        "attrs": _attrs_to_json(dataset.attrs),
        "coords": {str(name): _to_json(own.variable) for name, own in dataset.coords.items()},
        "data_vars": {str(name): _to_json(own.variable) for name, own in dataset.data_vars.items()},
    }


def dataset_from_json(document: Mapping[str, Any]) -> xr.Dataset:
    """The dataset that `dataset_to_json` took.

    Raises:
        KeyError, TypeError, ValueError: If the document is none of its.
    """
    variables, coords = (
        {name: _from_json(own) for name, own in document[part].items()} for part in ("data_vars", "coords")
    )
    return xr.Dataset(variables, coords=coords, attrs=_attrs_from_json(document["attrs"]))


def native_attrs(attrs: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """Attributes as Python's own numbers and lists, where a file gave numpy's."""
    return {
        name: value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
        for name, value in attrs.items()
    }


def _to_json(variable: xr.Variable) -> dict[str, Any]:
    values = variable.to_numpy()
    flat = values.ravel().tolist()
    return {
        "dims": list(variable.dims),
        "shape": list(values.shape),
        "dtype": values.dtype.str if values.dtype.kind == "U" else str(values.dtype),
        "attrs": _attrs_to_json(variable.attrs),
        "values": [number_to_json(value) for value in flat] if values.dtype.kind == "f" else flat,
    }


def _from_json(document: Mapping[str, Any]) -> xr.Variable:
    values = document["values"]
    dtype = np.dtype(document["dtype"])
    if dtype.kind == "f":
        values = [math.nan if value is None else float(value) for value in values]
    array = np.array(values, dtype=dtype).reshape(document["shape"])
    return xr.Variable(document["dims"], array, _attrs_from_json(document["attrs"]))


def _attrs_to_json(attrs: Mapping[Hashable, Any]) -> dict[str, Any]:
    return {
        str(name): number_to_json(value) if isinstance(value, float) else value
        for name, value in native_attrs(attrs).items()
    }


def _attrs_from_json(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None else value for name, value in attrs.items()}
