"""Labelled grids as run tables, and run tables as labelled grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_laws import TableError, observe, read_table
from mnmt_laws.tables.grid import to_dataset
from mnmt_laws.tables.table import example_table

CELL = ["task", "weight", "size"]


def losses(**changes: Any) -> xr.DataArray:
    """Losses 1 … 8 over two tasks, weights and sizes."""
    labels: dict[str, Any] = {"task": ["en-de", "en-fr"], "weight": [0.3, 0.5], "size": [1e8, 2e8]} | changes
    return xr.DataArray(np.arange(1.0, 9.0).reshape(2, 2, 2), dims=list(labels), coords=labels)


def with_value(value: float) -> xr.Dataset:
    array = losses()
    array[0, 1, 0] = value
    return xr.Dataset({"loss": array})


def test_every_cell_is_a_row() -> None:
    frame = read_table(xr.Dataset({"loss": losses(), "chrf": losses() * 10})).frame
    assert len(frame) == 16
    row = frame[frame["metric"].eq("chrf") & frame["task"].eq("en-fr") & frame["weight"].eq(0.3)]
    assert row[["size", "value"]].to_numpy().tolist() == [[1e8, 50], [2e8, 60]]


def test_cells_that_are_nan_are_absent() -> None:
    frame = read_table(with_value(np.nan)).frame
    assert sorted(frame["value"]) == [1, 2, 4, 5, 6, 7, 8]


def test_coordinates_and_variables_named_as_columns_are_columns() -> None:
    dataset = xr.Dataset({"loss": losses(), "role": (("size",), ["fit", "held-out"])})
    dataset = dataset.assign_coords(
        encoder_size=("size", [40.0, 80.0]), tokens=1e9, note=("size", ["x", "y"])
    )
    table = read_table(dataset)
    first, second = (table.frame[table.frame["size"] == size] for size in (1e8, 2e8))
    assert set(first["encoder_size"]) == {40}
    assert set(second["encoder_size"]) == {80}
    assert set(second["role"]) == {"held-out"}
    assert set(table.frame["tokens"]) == {1e9}
    assert table.warnings == ()


def test_runs_along_one_dimension_are_rows() -> None:
    dataset = xr.Dataset(
        {"loss": (("run", "task"), [[2.0, 3.0], [4.0, np.nan]])},
        coords={
            "run": ["x", "y"], "task": ["a", "b"],
            "size": ("run", [1e3, 2e3]), "weight": (("run", "task"), [[0.3, 0.7], [1.0, 0.0]]),
        },
    )  # fmt: skip
    frame = read_table(dataset).frame
    assert frame[["run", "task", "size", "weight", "value"]].to_numpy().tolist() == [
        ["x", "a", 1e3, 0.3, 2.0],
        ["x", "b", 1e3, 0.7, 3.0],
        ["y", "a", 2e3, 1.0, 4.0],
    ]


def test_a_dimension_without_labels_may_count_seeds() -> None:
    dataset = xr.Dataset({"loss": losses().expand_dims(seed=3)})
    assert sorted(read_table(dataset).frame["seed"].unique()) == [0, 1, 2]


@pytest.mark.parametrize("place", ["attrs", "own attrs", "dimension"])
def test_the_metric_of_value_is_said_in_one_of_three_places(place: str) -> None:
    dataset = {
        "attrs": xr.Dataset({"value": losses()}, attrs={"metric": "chrf"}),
        "own attrs": xr.Dataset({"value": losses().assign_attrs(metric="chrf")}),
        "dimension": xr.Dataset({"value": losses().expand_dims(metric=["chrf"])}),
    }[place]
    assert set(read_table(dataset).frame["metric"]) == {"chrf"}


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (
            with_value(np.inf),
            "dataset, loss at task=en-de, weight=0.5, size=1e8: `value` must be finite, but is inf; leave "
            "the "
            "row out if the run has no result.",
        ),
        (
            with_value(-1),
            "dataset, loss at task=en-de, weight=0.5, size=1e8: a loss must be above 0 nats per token, but "
            "is "
            "-1; give the cross-entropy, not the log-likelihood.",
        ),
        (
            xr.Dataset({"loss": losses(weight=[30, 50])}, attrs={"source": "sweep.nc"}),
            "sweep.nc, loss at task=en-de, weight=30, size=1e8 (and 7 more cells): `weight` must be in [0, "
            "1], "
            "but is 30; divide by 100 if the column holds percentages.",
        ),
        (
            xr.Dataset({"loss": losses(size=[12345678, 12345678])}),
            "dataset, loss at task=en-de, weight=0.3, size=12345678.0 and loss at task=en-de, weight=0.3, "
            "size=12345678.0: the same measurement twice, and 4 cells in all repeat earlier ones; remove "
            "them, or "
            "tell repeated runs apart in the `seed` column.",
        ),
        (
            xr.Dataset({"loss": losses().rename(task="lang")}),
            "dataset: `loss` over (lang, weight, size) has no `task`; add it with "
            "dataset.rename(lang='task').",
        ),
        (
            xr.Dataset({"loss": losses().isel(task=0, drop=True)}),
            "dataset: `loss` over (weight, size) has no `task`; add it with dataset.expand_dims(task=[...]).",
        ),
        (
            xr.Dataset({"loss": losses().drop_vars("size")}),
            "dataset: dimension `size` has no labels; add them: dataset.assign_coords(size=[...]).",
        ),
        (
            xr.Dataset({"loss": losses().expand_dims(batch=["x", "y"])}),
            "dataset: dimension `batch` of `loss` is no column of a run table; rename it, or choose from it "
            "with "
            "dataset.sel(batch=...).",
        ),
        (
            xr.Dataset({"value": losses()}),
            "dataset: `value` does not say of which metric; set dataset.attrs['metric'].",
        ),
        (
            xr.Dataset(coords=losses().coords),
            "dataset: no variable of a metric; give it one over task, weight, size, such as `loss`.",
        ),
        (
            xr.Dataset({"loss": losses() * np.nan}),
            "dataset: every cell is NaN; give the values that were measured.",
        ),
    ],
)
def test_mistakes_are_named_by_cell(dataset: xr.Dataset, message: str) -> None:
    with pytest.raises(TableError) as caught:
        read_table(dataset)
    assert str(caught.value) == message


def test_seeds_are_averaged_and_counted() -> None:
    rows = pd.DataFrame(
        {"size": [1, 1, 2], "task": "a", "weight": 0.3, "metric": "loss", "value": [2.0, 3.0, 4.0],
         "seed": [1, 2, 1], "role": ["fit", "fit", "held-out"], "tokens": [100.0, 100.5, 300.0]}
    )  # fmt: skip
    grid = to_dataset(observe(rows.assign(testset="news")))
    assert grid["value"].sel(task="a", weight=0.3).to_numpy().tolist() == [2.5, 4.0]
    assert grid["count"].sel(task="a", weight=0.3).to_numpy().tolist() == [2, 1]
    assert grid["role"].sel(task="a", weight=0.3).to_numpy().tolist() == ["fit", "held-out"]
    assert grid["tokens"].sel(task="a", weight=0.3).to_numpy().tolist() == [100.25, 300]
    assert grid["value"].attrs["units"] == "nats per token"
    assert grid["size"].attrs["units"] == "parameters"
    assert {key: grid.attrs[key] for key in ("source", "metric", "testset")} == {
        "source": "table",
        "metric": "loss",
        "testset": "news",
    }
    assert grid.attrs["software"].startswith("mnmt-laws ")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("role", ["fit", "held-out"]),
        ("mixture", ["a:0.3,b:0.7", "a:0.3,c:0.7"]),
        ("encoder_size", [1.0, 2.0]),
        ("tokens", [1e6, 2e6]),
        ("tokens", [1e6, None]),
    ],
)
def test_a_cell_does_not_average_different_runs(column: str, values: list[object]) -> None:
    rows = pd.DataFrame(
        {"size": 1, "task": "a", "weight": 0.3, "metric": "loss", "value": 2.0, column: values}
    )
    with pytest.raises(
        TableError, match=f"^table rows 2 and 3: the same task, .* another `{column}`; a grid"
    ):
        to_dataset(observe(rows.assign(seed=[1, 2])))


def test_the_example_survives_the_way_there_and_back() -> None:
    observations = observe(example_table())
    again = observe(to_dataset(observations))
    assert (again.source, again.metric, again.testset) == ("example", "loss", "test")
    kept = [
        *CELL,
        "value",
        "role",
        "mixture",
        "architecture",
        "encoder_size",
        "tokens",
        "flops",
        "irreducible",
    ]
    left, right = (
        part.frame.sort_values(CELL)[kept].reset_index(drop=True) for part in (observations, again)
    )
    pd.testing.assert_frame_equal(left, right, check_exact=True)


@st.composite
def tables(draw: Callable[..., Any]) -> pd.DataFrame:
    cells = st.tuples(
        st.sampled_from(["en-de", "ü", "x y"]),
        st.sampled_from([0.0, 0.1, 0.1 + 0.2, 0.3, 1.0]),
        st.floats(1, 1e12),
    )
    chosen = draw(st.lists(cells, min_size=1, max_size=8, unique=True))
    values = st.floats(1e-3, 1e2)
    rows = [
        {"task": task, "weight": weight, "size": size, "seed": seed, "value": draw(values), "role": role}
        for task, weight, size in chosen
        for role in [draw(st.sampled_from(["fit", "held-out"]))]
        for seed in range(draw(st.integers(1, 3)))
    ]
    return pd.DataFrame(rows).assign(metric=draw(st.sampled_from(["loss", "chrf", "ter"])))


@given(tables())
@settings(max_examples=15)
def test_a_grid_holds_the_same_cells(rows: pd.DataFrame) -> None:
    metric = rows["metric"].iloc[0]
    grid = to_dataset(observe(rows, metric=metric))
    cells = rows.groupby(CELL).agg(value=("value", "mean"), role=("role", "first")).reset_index()
    again = observe(grid, metric=metric)
    left = again.frame.sort_values(CELL)[[*CELL, "value", "role"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(left, cells, check_dtype=False, rtol=1e-12)
    xr.testing.assert_identical(to_dataset(again).drop_vars("count"), grid.drop_vars("count"))
    assert int(grid["count"].sum()) == len(rows)
