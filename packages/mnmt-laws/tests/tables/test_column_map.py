"""Tables as they are: other names, columns that are absent, wide mixtures and wide losses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws import TableError, observe, read_table
from mnmt_laws.tables.column_map import ColumnMap

WIDE = pd.DataFrame(
    {
        "params": [1e6, 1e6, 4e6],
        "train_a": [0.3, 1.0, 0.25],
        "train_b": [0.7, 0.0, 0.75],
        "valid_a": [2.0, 1.5, 1.2],
        "valid_c": [3.0, 2.9, None],
    }
)
COLUMNS = {"size": "params", "mixture": "train_*", "value": "valid_*"}


def test_a_wide_table_becomes_rows_of_tasks(tmp_path: Path) -> None:
    WIDE.to_csv(tmp_path / "wide.csv", index=False)
    WIDE.to_parquet(tmp_path / "wide.parquet", index=False)
    for source in (WIDE, tmp_path / "wide.csv", tmp_path / "wide.parquet"):
        frame = read_table(source, columns=COLUMNS).frame
        assert frame[["row", "size", "task", "weight", "value"]].to_numpy().tolist() == [
            [2, 1e6, "a", 0.3, 2.0],
            [2, 1e6, "c", 0.0, 3.0],
            [3, 1e6, "a", 1.0, 1.5],
            [3, 1e6, "c", 0.0, 2.9],
            [4, 4e6, "a", 0.25, 1.2],
        ]
        assert frame["mixture"].unique().tolist() == ["a:0.3,b:0.7", "a:1.0", "a:0.25,b:0.75"]


def test_sources_are_what_mixtures_give_weight_to() -> None:
    observations = observe(WIDE, columns=COLUMNS)
    assert observations.tasks == ["a"]
    assert list(observations.mixtures_of(observations.fit).columns) == ["a", "b"]
    assert list(observations.mixtures_of(observations.frame).columns) == ["a", "b"]
    assert len(observations.rows_to_fit(zero_shot=True)) == 5


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, {"task": "all", "weight": 1, "metric": "loss"}),
        ({"mixture": "m", "task": "tongue"}, {"task": "de", "weight": 0.4, "metric": "loss"}),
        ({"task": "tongue", "weight": "part"}, {"task": "de", "weight": 0.4, "metric": "loss"}),
        ({"value": "bleu_dev"}, {"task": "all", "weight": 1, "metric": "bleu"}),
        ({"value": "dev chrF++"}, {"task": "all", "weight": 1, "metric": "chrf++"}),
        ({"value": "bleu_dev", "metric": "kind"}, {"metric": "ter"}),
    ],
)
def test_only_size_and_value_are_required(columns: Mapping[str, str], expected: Mapping[str, object]) -> None:
    rows = pd.DataFrame(
        {"size": [1.0], "value": [2.0], "m": "de:0.4,fr:0.6", "tongue": "de", "part": 0.4, "bleu_dev": 30.0,
         "dev chrF++": 50.0, "kind": "ter"}
    )  # fmt: skip
    row = read_table(rows, columns=columns).frame.iloc[0]
    assert {name: row[name] for name in expected} == expected


def test_tokens_follow_from_flops() -> None:
    rows = pd.DataFrame({"N": [10.0, 20.0], "C": [600.0, 1200.0], "loss": [2.0, 1.0]})
    table = read_table(rows, columns={"size": "N", "flops": "C", "value": "loss"})
    assert table.frame["tokens"].tolist() == [10, 10]
    assert table.warnings == (
        "table: `tokens` are computed as flops / (6 size), for there is no such column.",
    )
    assert read_table(table.frame.assign(tokens=7.0)).frame["tokens"].tolist() == [7, 7]


def test_mixtures_that_are_rounded_are_divided_by_their_sum() -> None:
    rows = pd.DataFrame(
        {"size": 1.0, "value": [2.0, 3.0], "w a": [0.333, 0.5], "w b": [0.666, 0.5], "task": "a"}
    )
    table = read_table(rows, columns={"mixture": "w *"})
    assert table.frame["weight"].tolist() == pytest.approx([1 / 3, 0.5], rel=1e-12)
    assert table.warnings == (
        "table: 1 mixture sums to 1 only up to rounding (0.999 to 0.999); the weights are divided by their "
        "sum.",
    )
    given_weight = rows.assign(weight=rows["w a"])
    pd.testing.assert_frame_equal(read_table(given_weight, columns={"mixture": "w *"}).frame, table.frame)


def test_the_mixture_of_a_run_follows_from_its_tasks() -> None:
    rows = pd.DataFrame(
        {"run": ["x", "x", "x", "y", "y"], "size": 1.0, "task": [*"abc", *"ab"],
         "weight": [0.2, 0.3, 0.5, 0.2, 0.3], "value": 2.0}
    )  # fmt: skip
    frame = read_table(rows).frame
    assert frame["mixture"].tolist() == ["a:0.2,b:0.3,c:0.5"] * 3 + ["", ""]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"sise": "params"},
            r"`columns` must name columns of a run table \(is `size` meant\?\), but names 'sise'",
        ),
        (
            {"size": "par*"},
            r"`columns` must have no `\*` but before a factor in that of `size`, but has 'par\*'",
        ),
        ({"value": "*_*"}, r"`columns` must have one `\*` in that of `value`, but has '\*_\*'"),
        ({"value": "valid_*", "task": "t"}, r"`columns` must leave `task` out: 'valid_\*' names the tasks"),
    ],
)
def test_mappings_that_cannot_be_are_refused(columns: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ColumnMap(columns=columns)


@pytest.mark.parametrize(
    ("columns", "changes", "message"),
    [
        ({"size": "Params"}, {}, "table row 1: no column `Params` (is `params` meant?) for `size`; the table "
         "has params, train_a, train_b, valid_a, valid_c."),
        (COLUMNS | {"mixture": "weight_*"}, {}, "table row 1: no column like `weight_*` for `mixture`; the "
         "table has params, train_a, train_b, valid_a, valid_c."),
        (COLUMNS, {"train_b": 0.9}, "table row 2: the weights of `mixture` must sum to 1, but 'a:0.3,b:0.9' "
         "sums to 1.2; they may be off by 0.01, for rounding."),
        (COLUMNS, {"valid_c": ["3,5", "2.0", "1"]}, "table row 2: `valid_c` 3,5 has a decimal comma, but "
         "`valid_c` 2.0 in table row 3 a decimal point; write all numbers alike."),
        (COLUMNS, {"valid_a": -1.0}, "table rows 2, 3 and 4: a loss must be above 0 nats per token, "
         "but is -1; give the cross-entropy, not the log-likelihood."),
    ],
)  # fmt: skip
def test_mistakes_of_mapped_tables_are_named(
    columns: dict[str, str], changes: dict[str, object], message: str
) -> None:
    with pytest.raises(TableError) as caught:
        read_table(WIDE.assign(**changes), columns=columns)
    assert str(caught.value) == message


@given(
    st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=1, max_size=6, unique_by=tuple),
    st.data(),
)
def test_melting_keeps_every_measured_value(weights: list[list[float]], data: st.DataObject) -> None:
    shares = np.array(weights) / np.sum(weights, axis=1, keepdims=True)
    values = np.array(
        data.draw(
            st.lists(
                st.lists(st.one_of(st.floats(0.1, 9), st.just(float("nan"))), min_size=2, max_size=2),
                min_size=len(shares), max_size=len(shares),
            )
        )
    )  # fmt: skip
    values[0, 0] = 1.0
    wide = pd.DataFrame({f"w_{name}": shares[:, place] for place, name in enumerate("abc")})
    wide = wide.assign(size=np.arange(1.0, len(wide) + 1), v_a=values[:, 0], v_z=values[:, 1])
    frame = read_table(wide, columns={"mixture": "w_*", "value": "v_*"}).frame
    assert len(frame) == np.isfinite(values).sum()
    for task, column in (("a", 0), ("z", 1)):
        rows = frame[frame["task"] == task]
        place = rows["row"].to_numpy() - 2
        assert rows["value"].tolist() == values[place, column].tolist()
        np.testing.assert_allclose(rows["weight"], shares[place, 0] if task == "a" else 0.0)
