"""Save fits, and load them unchanged, as NetCDF or strict JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import xarray as xr

from mnmt_laws.errors import TableError
from mnmt_laws.fitting.json_documents import (
    Fetch,
    dataset_from_json,
    dataset_to_json,
    from_document,
    native_attrs,
    to_document,
)
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.laws import LAWS

FORMAT = "mnmt-laws fit"
SCHEMA = 1


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


Reader = Callable[[Path], LawFit]
Writer = Callable[[dict[str, Any], LawFit, Path], None]


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
