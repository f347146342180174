"""Run records to run tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnmt_laws import TableError, collect, read_table

Write = Callable[..., Path]


def measured(**changes: Any) -> dict[str, Any]:
    line = {
        "step": 5,
        "tokens": 50,
        "flops": 5e6,
        "task": "en-de",
        "testset": "test",
        "metric": "loss",
        "value": 2.5,
    }
    return line | {"signature": ""} | changes


def test_a_measurement_becomes_a_row(write_record: Write) -> None:
    evals = [measured(), measured(task="en-fr", value=9.0)]
    folder = write_record("r1", evals=evals, data_fingerprint="0123456789abcdef")
    collected = collect(folder.parent)
    row, zero_shot = collected.table.to_dict("records")
    expected = {
        "run": "r1", "architecture": "t5-encdec", "size": 1000, "encoder_size": 400, "decoder_size": 600,
        "task": "en-de", "weight": 0.25, "mixture": "en-de:0.25,en-zh:0.75", "testset": "test",
        "metric": "loss",
        "step": 5, "tokens": 50, "flops": 5e6, "seed": 7, "role": "fit", "irreducible": 0.5,
        "cooldown_start": None, "annealed": None, "study": "tiny", "data_fingerprint": "0123456789ab",
        "config_fingerprint": "", "value": 2.5,
    }  # fmt: skip
    assert row == expected
    assert zero_shot["weight"] == 0.0
    assert len(read_table(collected.table).frame) == 2


def test_annealed_is_what_the_line_says_or_follows_from_the_schedule(write_record: Write) -> None:
    config = {"train": {"steps": 6, "cooldown_steps": 2}}
    old = write_record("old", evals=[measured(), measured(step=6)], config=config)
    assert collect(old).table["annealed"].tolist() == [0, 1]
    new = write_record("new", evals=[measured(annealed=False), measured(step=6, annealed=True)])
    assert collect(new).table["annealed"].tolist() == [0, 1]


def test_a_single_record_is_taken_as_one(write_record: Write) -> None:
    assert len(collect(write_record("r1", evals=[measured()])).records) == 1


def test_a_later_line_replaces_an_earlier_one(write_record: Write) -> None:
    folder = write_record("r1", evals=[measured(value=3.0), measured(step=6, value=2.0), measured(value=1.0)])
    assert collect(folder).table["value"].tolist() == [1.0, 2.0]


def test_failed_and_unfinished_runs_are_listed_and_left_out(write_record: Write) -> None:
    write_record("a", evals=[measured()])
    write_record("b", evals=[measured()], status="failed", error="loss became NaN at step 12")
    write_record("c", evals=[measured()], status="running")
    folder = write_record("d")
    collected = collect(folder.parent)
    assert collected.table["run"].unique().tolist() == ["a"]
    assert collected.warnings == (
        "run b failed and is left out: loss became NaN at step 12",
        "run c is unfinished and is left out",
        "run d finished without measurements",
    )


@pytest.mark.parametrize("name", ["phases", "changes"])
def test_a_run_whose_mixture_changes_is_not_attributed_to_one(write_record: Write, name: str) -> None:
    mixing = {name: [{"step": 3, "weights": {"en-de": 1.0}}]}
    folder = write_record("a", evals=[measured()], config={"train": {"mixing": mixing}})
    runs = collect(folder)
    assert set(runs.table["role"]) == {"left-out"}
    assert "its mixture changes during training (`phases`); it is `left-out`" in runs.warnings[0]


def test_a_last_line_cut_short_is_left_out_aloud(write_record: Write) -> None:
    folder = write_record("r1", evals=json.dumps(measured()) + '\n{"step": 6, "ta')
    collected = collect(folder)
    assert len(collected.table) == 1
    assert collected.warnings == ("run r1: the last line of evals.jsonl is cut short and is left out",)


def test_a_corrupt_line_in_the_middle_is_named(write_record: Write) -> None:
    folder = write_record(
        "r1", evals=json.dumps(measured()) + "\n{broken\n" + json.dumps(measured(step=9)) + "\n"
    )
    with pytest.raises(TableError, match=r"evals\.jsonl:2: not a line of JSON"):
        collect(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 1,\n "run": ', r"run\.json:2: not JSON"),
        ('{"schema": 2}', r"run\.json: `schema` must be 1"),
        ("[]", r"run\.json: `schema` must be 1"),
        ('{"schema": 1, "status": "finished", "mixture": {}}', r"run\.json: `size` is missing"),
        (
            '{"schema": 1, "status": "done", "size": 3, "mixture": {}}',
            "`status` must be one of running, finished",
        ),
        (
            '{"schema": 1, "status": "finished", "size": 3, "mixture": {"a": 0.4, "b": 0.7}}',
            r"the weights of `mixture` must be numbers that sum to 1, but are \[0\.4, 0\.7\]",
        ),
        (
            '{"schema": 1, "status": "finished", "size": 3, "mixture": {"a": "1"}}',
            r"the weights of `mixture` must be numbers that sum to 1, but are \['1'\]",
        ),
    ],
)
def test_a_corrupt_run_is_named(write_record: Write, text: str, message: str) -> None:
    folder = write_record("r1", evals=[measured()])
    (folder / "run.json").write_text(text)
    with pytest.raises(TableError, match=message):
        collect(folder.parent)


def test_a_measurement_that_is_no_number_is_named(write_record: Write) -> None:
    folder = write_record("r1", evals=[measured(), measured(step=6, value="2.5")])
    with pytest.raises(TableError, match=r"evals\.jsonl:2: `value` must be a number, but is '2\.5'; remove"):
        collect(folder)


def test_measurements_that_are_not_finite_are_left_out_aloud(write_record: Write) -> None:
    values = (2.5, float("nan"), float("inf"))
    folder = write_record("r1", evals=[measured(step=step, value=value) for step, value in enumerate(values)])
    collected = collect(folder)
    assert collected.table["value"].tolist() == [2.5]
    assert collected.warnings == ("run r1: measurements that are NaN or infinite are left out: 2",)


def test_no_records_and_no_finished_runs_are_told_apart(tmp_path: Path, write_record: Write) -> None:
    with pytest.raises(TableError, match="no run records here"):
        collect(tmp_path)
    folder = write_record("b", status="failed", error="out of memory")
    with pytest.raises(
        TableError, match=r"no finished run has measurements \(run b failed .* out of memory\)"
    ):
        collect(folder.parent)


@pytest.mark.parametrize(
    ("config", "start"),
    [
        ({"train": {"steps": 100, "cooldown_steps": 30}}, 70),
        ({"train": {"steps": 100, "cooldown_steps": 0}}, 100),
        ({"train": {"steps": 100}}, None),
        ({}, None),
    ],
)
def test_the_start_of_the_cooldown_is_collected(
    write_record: Write, config: dict[str, Any], start: int | None
) -> None:
    folder = write_record("r1", evals=[measured()], config=config)
    assert collect(folder).table["cooldown_start"].tolist() == [start]
