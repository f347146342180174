"""Dataclasses, data frames and xarray datasets as strict JSON, to the last bit."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.laws import LAWS
from mnmt_laws.laws.law import Law

T = TypeVar("T")
Keep = Callable[[str, xr.Dataset], Any]
Fetch = Callable[[Any], xr.Dataset]
_ROWS = "position"


def to_document(value: object, keep: Keep, name: str = "") -> Any:
    """Return a value as JSON can hold it: NaN as None, a law as its name.

    Args:
        value: A dataclass, or anything that its fields may hold.
        keep: Stores a dataset under a name such as `observations/frame`, and returns a reference to it.
        name: Name of the value itself.

    Raises:
        TypeError: If a field holds something else.
    """
    if isinstance(value, Law):
        return value.name
    if isinstance(value, xr.Dataset):
        return keep(name, value)
    if isinstance(value, pd.DataFrame):
        columns = {str(column): (_ROWS, values.to_numpy()) for column, values in value.items()}
        dtypes = {str(column): str(values.dtype) for column, values in value.items()}
        return {"dtypes": dtypes, "table": keep(name, xr.Dataset(columns))}
    if dataclasses.is_dataclass(value):
        return {
            field.name: to_document(getattr(value, field.name), keep, f"{name}/{field.name}".lstrip("/"))
            for field in dataclasses.fields(value)
        }
    return _plain(value, keep, name)


def _plain(value: object, keep: Keep, name: str) -> Any:
    if isinstance(value, tuple):
        return [to_document(item, keep, f"{name}/{place}") for place, item in enumerate(value)]
    if isinstance(value, float):
        return number_to_json(value)
    if value is None or isinstance(value, (str, int)):
        return value
    raise TypeError(f"`{name}` cannot be saved, as it is a {type(value).__name__}.")


def number_to_json(value: float) -> float | str | None:
    """Return a number for strict JSON: NaN as None, infinities as text."""
    if math.isfinite(value):
        return float(value)
    return None if math.isnan(value) else str(value)


def from_document(kind: type[T], document: Any, fetch: Fetch) -> T:
    """Return the value that `to_document` took.

    Args:
        kind: Its type.
        document: The return value of `to_document`.
        fetch: The dataset that a reference stands for.

    Raises:
        TypeError, ValueError, KeyError: If the document is not one of this type.
    """
    loaded: T = _decode(kind, document, fetch)
    return loaded


def _decode(kind: Any, document: Any, fetch: Fetch) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        inner = next(argument for argument in arguments if argument is not type(None))
        return None if document is None else _decode(inner, document, fetch)
    if origin is tuple:
        return tuple(_decode(arguments[0], item, fetch) for item in document)
    if kind is xr.Dataset:
        return fetch(document)
    if kind is pd.DataFrame:
        table = fetch(document["table"])
        columns = {
            column: pd.Series(table[column].to_numpy(), dtype=dtype)
            for column, dtype in document["dtypes"].items()
        }
        return pd.DataFrame(columns)
    if isinstance(kind, type) and issubclass(kind, Law):
        return LAWS[document]
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _decode(hints[name], item, fetch) for name, item in document.items()})  # type: ignore[operator]
    return _decode_plain(kind, origin, document)


def _decode_plain(kind: Any, origin: Any, document: Any) -> Any:
    if kind is float:
        return math.nan if document is None else float(document)
    if origin is not Literal and not isinstance(document, kind):
        raise TypeError(f"must be {kind.__name__}, but is {document!r}.")
    return document


def dataset_to_json(dataset: xr.Dataset) -> dict[str, Any]:
    """Return attributes, coordinates and variables; values flat in C order, NaN as null."""
    return {
        "attrs": _attrs_to_json(dataset.attrs),
        "coords": {str(name): _to_json(variable.variable) for name, variable in dataset.coords.items()},
        "data_vars": {str(name): _to_json(variable.variable) for name, variable in dataset.data_vars.items()},
    }


def dataset_from_json(document: Mapping[str, Any]) -> xr.Dataset:
    """Return the dataset that `dataset_to_json` took.

    Raises:
        KeyError, TypeError, ValueError: If the document is not one that `dataset_to_json` returned.
    """
    variables, coords = (
        {name: _from_json(variable) for name, variable in document[part].items()}
        for part in ("data_vars", "coords")
    )
    return xr.Dataset(variables, coords=coords, attrs=_attrs_from_json(document["attrs"]))


def native_attrs(attrs: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """Return attributes with Python's numbers and lists in place of numpy's."""
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
