from dataclasses import replace
from pathlib import Path

import pytest
from fake_training import fake_runs

from mnmt_model import RunError
from mnmt_model.runs import new_record
from mnmt_model.runs.run_record import (
    Eval,
    append_evals,
    drop_lines_after,
    find_runs,
    read_evals,
    read_run,
    write_run,
)

MEASUREMENT = Eval(
    step=10,
    tokens=20,
    flops=30,
    task="en-de",
    testset="test",
    metric="loss",
    value=1.5,
    signature="nats/token",
)


def test_measurements_are_read_as_they_were_appended(tmp_path: Path) -> None:
    append_evals(tmp_path, [MEASUREMENT])
    append_evals(tmp_path, [MEASUREMENT])
    assert read_evals(tmp_path) == [MEASUREMENT, MEASUREMENT]


def test_a_line_that_is_no_measurement_is_named(tmp_path: Path) -> None:
    (tmp_path / "evals.jsonl").write_text('{"step": 1}\n', encoding="utf-8")
    with pytest.raises(RunError, match=r"evals\.jsonl:1: must have exactly the keys flops, metric, "):
        read_evals(tmp_path)


def test_runs_are_found_alone_and_in_folders(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text('{"schema": 1}', encoding="utf-8")
    assert find_runs([tmp_path]) == [tmp_path / "a", tmp_path / "b"]
    assert find_runs([tmp_path / "b"]) == [tmp_path / "b"]


def test_another_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema": 2}', encoding="utf-8")
    with pytest.raises(RunError, match=r"run\.json: schema is 2, but must be 1"):
        read_run(tmp_path)


def test_a_record_that_lacks_a_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema": 1, "run": "x"}', encoding="utf-8")
    with pytest.raises(RunError, match=r"run\.json: lacks `architecture`"):
        read_run(tmp_path)


def test_an_older_record_says_that_tokens_choose_their_experts(tmp_path: Path) -> None:
    (run,) = fake_runs(1)
    record = new_record(run, tmp_path, vocab_size=10, data=None)
    for experts_choose in (False, True):
        model = {**record.config["model"], "expert_choice": experts_choose}
        write_run(tmp_path, replace(record, config={**record.config, "model": model}))
        if not experts_choose:
            assert read_run(tmp_path) == record
    with pytest.raises(RunError, match=r"run\.json: was trained with `expert_choice`, which"):
        read_run(tmp_path)


def test_lines_after_a_step_are_dropped(tmp_path: Path) -> None:
    append_evals(tmp_path, [MEASUREMENT, replace(MEASUREMENT, step=11)])
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"step": 10}\n{"step": 11}\n{"step": 12', encoding="utf-8")
    drop_lines_after(tmp_path, 10)
    assert read_evals(tmp_path) == [MEASUREMENT]
    assert metrics.read_text() == '{"step": 10}\n'
