"""Save fits, and load them to the last bit, as NetCDF or strict JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import tempfile
import types
from collections.abc import Callable, Hashable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.errors import TableError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.laws import LAWS
from mnmt_laws.laws.law import Law

FORMAT = "mnmt-laws fit"
SCHEMA = 1
Reader = Callable[[Path], LawFit]
Writer = Callable[[dict[str, Any], LawFit, Path], None]
T = TypeVar("T")
Keep = Callable[[str, xr.Dataset], Any]
Fetch = Callable[[Any], xr.Dataset]
_ROWS = "position"


def save(fit: LawFit, path: str | Path) -> None:
    """Write a fit to `.nc` (NetCDF 4, a group for each dataset and table) or `.json` (NaN as null).

    The file appears whole or not at all. `load` gives the same fit again, to the last bit.

    Raises:
        TableError: If the file name ends otherwise, or the file cannot be written.
    """
    target = Path(path)
    _, write = _format_of(target)
    stamp = {"format": FORMAT, "schema": SCHEMA, "software": f"mnmt-laws {version('mnmt-laws')}"}
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.stem}-") as folder:
            partial = Path(folder) / target.name
            write(stamp, fit, partial)
            partial.replace(target)
    except OSError as error:
        raise TableError(f"{target}: cannot be written ({error.strerror or error}).") from error


def load(path: str | Path) -> LawFit:
    """Read a fit that `save` wrote.

    Raises:
        TableError: If the file is missing, damaged, no fit, or written by a newer version.
    """
    target = Path(path)
    read, _ = _format_of(target)
    if not target.is_file():
        raise TableError(f"{target}: no such file; give a .nc or .json file that `save` wrote.")
    try:
        return read(target)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise TableError(f"{target}: damaged or not a saved fit; fit again and save.") from error


def _format_of(path: Path) -> tuple[Reader, Writer]:
    formats: dict[str, tuple[Reader, Writer]] = {
        ".nc": (_read_netcdf, _write_netcdf),
        ".json": (_read_json, _write_json),
    }
    if path.suffix.lower() not in formats:
        raise TableError(f"{path}: a saved fit must end in .nc or .json.")
    return formats[path.suffix.lower()]


def _check_stamp(stamp: dict[str, Any], path: Path) -> None:
    if stamp.get("format") != FORMAT:
        raise TableError(f"{path}: not a saved fit; give a file that `save` wrote.")
    schema = stamp["schema"]
    if schema != SCHEMA:
        raise TableError(
            f"{path}: written by {stamp.get('software')} in schema {schema}, but this version reads schema "
            f"{SCHEMA}; update mnmt-laws, or fit again."
        )


def _decode_fit(fields: dict[str, Any], fetch: Fetch, path: Path) -> LawFit:
    if fields["law"] not in LAWS:
        raise TableError(
            f"{path}: a fit of the {fields['law']} law, which this version does not know; update "
            f"mnmt-laws, or fit again."
        )
    return from_document(LawFit, fields, fetch)


def _write_json(stamp: dict[str, Any], fit: LawFit, path: Path) -> None:
    document = {**stamp, "fit": to_document(fit, lambda _, dataset: dataset_to_json(dataset))}
    path.write_text(json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def _read_json(path: Path) -> LawFit:
    document = json.loads(path.read_text(encoding="utf-8"))
    _check_stamp(document, path)
    return _decode_fit(document["fit"], dataset_from_json, path)


def _write_netcdf(stamp: dict[str, Any], fit: LawFit, path: Path) -> None:
    groups: dict[str, xr.Dataset] = {}

    def keep(name: str, dataset: xr.Dataset) -> dict[str, Any]:
        dtypes = {str(key): str(variable.dtype) for key, variable in dataset.variables.items()}
        groups[name] = dataset.map(_as_text, keep_attrs=True)
        return {"group": name, "dtypes": dtypes}

    fields = json.dumps(to_document(fit, keep), allow_nan=False, ensure_ascii=False)
    root = xr.Dataset(attrs={**stamp, "fit": fields})
    tree = xr.DataTree.from_dict({"/": root, **groups})
    encoding = {f"/{name}": _without_fill(dataset) for name, dataset in groups.items()}
    tree.to_netcdf(path, engine="h5netcdf", encoding=encoding)


def _as_text(values: xr.DataArray) -> xr.DataArray:
    return values.astype(str) if values.dtype == object else values


def _without_fill(dataset: xr.Dataset) -> dict[str, Any]:
    return {
        str(name): {"_FillValue": None}
        for name, variable in dataset.variables.items()
        if variable.dtype.kind == "f"
    }


def _read_netcdf(path: Path) -> LawFit:
    with xr.open_datatree(path, engine="h5netcdf", decode_cf=False) as file:
        tree = file.load()
    stamp = {str(name): value for name, value in native_attrs(tree.attrs).items()}
    _check_stamp(stamp, path)

    def fetch(reference: dict[str, Any]) -> xr.Dataset:
        stored = tree[reference["group"]].to_dataset()
        typed = stored.assign(
            {name: stored[name].astype(dtype) for name, dtype in reference["dtypes"].items()}
        )
        for variable in typed.variables.values():
            variable.attrs = native_attrs(variable.attrs)
        return typed.assign_attrs(native_attrs(typed.attrs))

    return _decode_fit(json.loads(stamp["fit"]), fetch, path)


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
