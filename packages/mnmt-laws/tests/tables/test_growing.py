"""Run tables that runs are added to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mnmt_laws import TableError, collect, read_table
from mnmt_laws.tables.growing import add_runs, write_table

Write = Callable[..., Path]


def loss(step: int = 5, value: float = 2.5, **changes: Any) -> dict[str, Any]:
    """Return a line of evals.jsonl."""
    line = {"step": step, "tokens": 10 * step, "flops": 5e6, "task": "en-de", "testset": "test"}
    return line | {"metric": "loss", "value": value} | changes


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of another hand: rows of two runs take turns, numbers look otherwise, a column is its own."""
    path = tmp_path / "runs.csv"
    path.write_text(
        "run,size,mixture,seed,task,testset,metric,step,value,note\n"
        'a,1000.0,"en-de:0.25,en-zh:0.75",7.0,en-de,test,loss,5.0,3.50,one\n'
        'b,1000.0,"en-de:0.25,en-zh:0.75",7.0,en-de,test,loss,5.0,2.10,\n'
        'a,1000.0,"en-de:0.25,en-zh:0.75",7.0,en-zh,test,loss,5.0,3.60,\n',
        encoding="utf-8",
    )
    return path


def rows(frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    return list(frame[["run", "task", "value"]].itertuples(index=False, name=None))


def test_new_runs_follow_and_all_else_stays_as_it_is(table: Path, write_record: Write) -> None:
    before = pd.read_csv(table, dtype=str, keep_default_na=False)
    folder = write_record("0", evals=[loss(value=1.5), loss(step=6, value=1.25)]).parent
    grown = add_runs(table, collect(folder).table)
    assert (grown.added, grown.replaced, grown.warnings) == (("0",), (), ())
    pd.testing.assert_frame_equal(grown.table.head(3)[before.columns], before)
    assert rows(grown.table)[3:] == [("0", "en-de", "1.5"), ("0", "en-de", "1.25")]
    write_table(grown.table, table)
    assert len(read_table(table).frame) == 5


def test_a_run_that_is_measured_again_is_replaced_in_its_place(table: Path, write_record: Write) -> None:
    evals = [loss(value=1.0), loss(task="en-zh", value=2.0), loss(metric="bleu", value=30.0)]
    grown = add_runs(table, collect(write_record("a", evals=evals)).table)
    assert (grown.added, grown.replaced) == ((), ("a",))
    assert rows(grown.table) == [
        ("a", "en-de", "1.0"), ("a", "en-zh", "2.0"), ("a", "en-de", "30.0"), ("b", "en-de", "2.10"),
    ]  # fmt: skip


def test_a_run_with_fewer_measurements_replaces_nothing(table: Path, write_record: Write) -> None:
    write_record("a", evals=[loss(value=1.0), loss(step=6, value=1.0)])
    grown = add_runs(table, collect(write_record("c", evals=[loss()]).parent).table)
    assert [run for run, *_ in rows(grown.table)] == ["a", "b", "a", "c"]
    assert grown.warnings == (f"run a stays as it is in {table}, which has more measurements of it",)


def test_adding_again_changes_nothing(tmp_path: Path, write_record: Write) -> None:
    write_record("a", evals=[loss(), loss(step=6)])
    folder = write_record("b", evals=[loss()]).parent
    path = tmp_path / "new.csv"
    for _ in range(2):
        write_table(add_runs(path, collect(folder).table).table, path)
        assert path.read_text() == collect(folder).table.to_csv(index=False)
    assert sorted(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 2000}, r"runs\.csv: a has the size 1000\.0, but in its record 2000"),
        ({"seed": 8}, "a has the seed 7.0, but in its record 8"),
        ({"mixture": {"en-de": 0.5, "en-zh": 0.5}}, "a has the mixture en-de:0.25,en-zh:0.75, but"),
    ],
)
def test_another_run_of_the_same_name_is_refused(
    table: Path, write_record: Write, change: dict[str, Any], message: str
) -> None:
    before = table.read_text()
    with pytest.raises(TableError, match=message):
        add_runs(table, collect(write_record("a", evals=[loss()], **change)).table)
    assert table.read_text() == before


def test_what_is_no_run_table_is_refused(tmp_path: Path, write_record: Write) -> None:
    new = collect(write_record("a", evals=[loss()])).table
    path = tmp_path / "runs.csv"
    path.write_text("size,value\n1000,2.5\n")
    with pytest.raises(TableError, match=r"runs\.csv row 1: no column `run`"):
        add_runs(path, new)
    path.write_text("run,value\na,2.5\n")
    with pytest.raises(TableError, match=r"runs\.csv row 1: no column `size`"):
        add_runs(path, new)
    with pytest.raises(TableError, match=r"must end in \.csv"):
        add_runs(path.rename(tmp_path / "runs.parquet"), new)
    with pytest.raises(TableError, match=r"runs\.txt: must end in \.csv or \.parquet"):
        write_table(new, tmp_path / "runs.txt")
