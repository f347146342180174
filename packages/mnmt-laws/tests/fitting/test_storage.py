"""Fits saved and loaded are the same fits, and other files are refused in a sentence."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_laws import LawFit, ResidualBootstrap, TableError, fit, observe
from mnmt_laws.fitting.storage import load, save
from mnmt_laws.tables.table import example_table

SUFFIXES = (".nc", ".json")
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)


def contents(value: object) -> object:
    """All that a fit holds, with types and order; NaN and signed zeros tell themselves apart by `repr`."""
    if isinstance(value, xr.Dataset):
        variables = [
            (name, own.dims, str(own.dtype), own.shape, repr(own.to_numpy().tolist()), repr(dict(own.attrs)))
            for name, own in sorted(value.variables.items())
        ]
        return variables, sorted(value.coords), dict(value.sizes), repr(dict(value.attrs))
    if isinstance(value, pd.DataFrame):
        return [
            (name, str(own.dtype), repr(own.tolist())) for name, own in value.items()
        ], value.index.tolist()
    if dataclasses.is_dataclass(value):
        return {field.name: contents(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return repr(value)


def assert_same(left: LawFit, right: LawFit) -> None:
    assert contents(left) == contents(right)


def saved_and_loaded(fitted: LawFit, suffix: str) -> LawFit:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"fit{suffix}"
        save(fitted, path)
        assert [entry.name for entry in Path(folder).iterdir()] == [path.name]
        return load(path)


@pytest.fixture(scope="module")
def fitted() -> LawFit:
    return fit(example_table(), law="joint", uncertainty=ResidualBootstrap(refits=20))


@pytest.mark.parametrize("law", ["joint", "capacity"])
def test_a_fit_comes_back_the_same(law: Any) -> None:
    fitted = fit(example_table(), law=law, uncertainty=ResidualBootstrap(refits=20))
    predicted = fitted.predict(size=1e6, task="xx-aa", weight=0.5)
    for suffix in SUFFIXES:
        loaded = saved_and_loaded(fitted, suffix)
        assert_same(fitted, loaded)
        assert loaded.law is fitted.law
        assert loaded.warnings == fitted.warnings
        assert loaded.predict(size=1e6, task="xx-aa", weight=0.5) == predicted


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_fit_to_a_grid_without_labels_comes_back_the_same(suffix: str) -> None:
    values = xr.DataArray(
        [[[3.0, 2.5, 2.2, 2.1]]], coords={"task": ["a"], "weight": [1.0], "size": [1e3, 1e4, 1e5, 1e6]},
        dims=("task", "weight", "size"),
    )  # fmt: skip
    fitted = fit(observe(xr.Dataset({"loss": values})), law="per-weighting")
    assert_same(fitted, saved_and_loaded(fitted, suffix))


@st.composite
def datasets(draw: Any, draws: int | None) -> xr.Dataset:
    tasks = draw(st.lists(TEXT, min_size=1, max_size=3, unique=True))
    weights = sorted(draw(st.lists(st.floats(0, 1), min_size=1, max_size=3, unique=True)))
    lead = () if draws is None else ("draw",)
    shape = (*(() if draws is None else (draws,)), len(tasks), len(weights))

    def array(size: tuple[int, ...], dtype: type = np.float64) -> Any:
        count, values = math.prod(size), st.floats(width=8 * np.dtype(dtype).itemsize)
        return np.array(draw(st.lists(values, min_size=count, max_size=count)), dtype).reshape(size)

    def attrs() -> dict[str, Any]:
        values = TEXT | FINITE | st.integers(-(2**53), 2**53)
        return dict(draw(st.dictionaries(st.sampled_from(["units", "source", "seed", "share"]), values)))

    return xr.Dataset(
        {
            "alpha": ((*lead, "task"), array(shape[:-1]), attrs()),
            "beta": ((*lead, "task", "weight"), array(shape), attrs()),
            "residual_std": ((*lead, "task"), array(shape[:-1], np.float32), attrs()),
            "count": ((*lead, "task"), np.zeros(shape[:-1], np.int64)),
        },
        coords={"task": tasks, "weight": weights},
        attrs=attrs(),
    )


@st.composite
def frames(draw: Any) -> pd.DataFrame:
    rows = draw(st.integers(0, 4))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return list(draw(st.lists(values, min_size=rows, max_size=rows)))

    return pd.DataFrame(
        {
            "row": pd.Series(column(st.integers(2, 2**40)), dtype="int64"),
            "run": pd.Series(column(TEXT), dtype=object),
            "metric": pd.Series(column(TEXT), dtype="str"),
            "value": pd.Series(column(st.floats()), dtype=float),
            "kept": pd.Series(column(st.booleans()), dtype=bool),
        }
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=15, deadline=None)
@given(
    parameters=datasets(None),
    draws=st.integers(0, 3).flatmap(datasets),
    frame=frames(),
    converged=st.booleans(),
)
def test_save_and_load_are_the_identity(
    fitted: LawFit,
    suffix: str,
    parameters: xr.Dataset,
    draws: xr.Dataset,
    frame: pd.DataFrame,
    converged: bool,
) -> None:
    observations = dataclasses.replace(fitted.observations, frame=frame, testset="", source="α β.csv")
    changed = dataclasses.replace(
        fitted, parameters=parameters, draws=draws, observations=observations, converged=converged
    )
    assert_same(changed, saved_and_loaded(changed, suffix))


def test_json_is_strict_and_has_nan_as_null(fitted: LawFit, tmp_path: Path) -> None:
    absent = dataclasses.replace(fitted, parameters=fitted.parameters * np.nan)
    save(absent, tmp_path / "fit.json")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads((tmp_path / "fit.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert set(document["fit"]["parameters"]["data_vars"]["alpha"]["values"]) == {None}


def test_netcdf_opens_without_this_package(fitted: LawFit, tmp_path: Path) -> None:
    save(fitted, tmp_path / "fit.nc")
    with xr.open_dataset(tmp_path / "fit.nc", group="parameters", engine="h5netcdf") as parameters:
        xr.testing.assert_identical(parameters.load(), fitted.parameters)


def test_a_write_that_fails_leaves_the_old_file(
    fitted: LawFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fit.json"
    path.write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(TableError, match=r"fit\.json: cannot be written \(No space left on device\)\."):
        save(fitted, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["fit.txt", "fit"])
def test_other_names_are_refused(fitted: LawFit, tmp_path: Path, name: str) -> None:
    for attempt in (lambda: save(fitted, tmp_path / name), lambda: load(tmp_path / name)):
        with pytest.raises(TableError, match=r"a saved fit must end in \.nc or \.json\.$"):
            attempt()


def test_a_folder_that_is_missing_is_named(fitted: LawFit, tmp_path: Path) -> None:
    with pytest.raises(
        TableError, match=r"nowhere/fit\.json: cannot be written \(No such file or directory\)"
    ):
        save(fitted, tmp_path / "nowhere" / "fit.json")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_named(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(TableError, match=r"no such file; give a \.nc or \.json file that `save` wrote"):
        load(tmp_path / f"fit{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_file_cut_short_is_refused(fitted: LawFit, tmp_path: Path, suffix: str, share: float) -> None:
    path = tmp_path / f"fit{suffix}"
    save(fitted, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(TableError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: damaged or not a saved fit; fit again and save."


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_of_others_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"fit{suffix}"
    if suffix == ".json":
        path.write_text('{"alpha": 1}')
    else:
        xr.Dataset({"alpha": 1.0}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(TableError, match="not a saved fit; give a file that `save` wrote"):
        load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema": 9, "software": "mnmt-laws 7.0"},
            "written by mnmt-laws 7.0 in schema 9, but this version reads schema 1; update mnmt-laws, or fit "
            "again.",
        ),
        ({"fit": {}}, "damaged or not a saved fit; fit again and save."),
        ({"fit": []}, "damaged or not a saved fit; fit again and save."),
    ],
)
def test_documents_that_do_not_fit_are_refused(
    fitted: LawFit, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "fit.json"
    save(fitted, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(TableError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: {message}"


def test_a_law_this_version_does_not_know_is_refused(fitted: LawFit, tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    save(fitted, path)
    document = json.loads(path.read_text())
    document["fit"]["law"] = "perpetual"
    path.write_text(json.dumps(document))
    with pytest.raises(
        TableError, match="a fit of the perpetual law, which this version does not know; update"
    ):
        load(path)
