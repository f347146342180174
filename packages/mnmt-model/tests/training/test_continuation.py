from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_training import fake_runs

from mnmt_model.runs import RunRecord, new_record
from mnmt_model.training.continuation import first_change


def record(tmp_path: Path, **settings: Any) -> RunRecord:
    (run,) = fake_runs(1)
    run = replace(run, train=replace(run.train, **settings))
    return new_record(run, tmp_path, vocab_size=10, data=None)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"eval_every": 0}, {}),  # a study of mnmt-model 0.4, in which 0 was the default
        ({"log_every": 1}, {"log_every": 2}),
    ],
)
def test_what_changes_no_weight_may_change(
    tmp_path: Path, before: dict[str, Any], now: dict[str, Any]
) -> None:
    assert first_change(record(tmp_path, **before), record(tmp_path, **now)) is None


def test_a_setting_that_is_no_more_does_not_count(tmp_path: Path) -> None:
    now = record(tmp_path)
    config = {**now.config, "train": {**now.config["train"], "pack": 8}}
    assert first_change(replace(now, config=config), now) is None


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        ({"batch_tokens": 100}, {"batch_tokens": 200}, "config.train.batch_tokens (100, now 200)"),
        (
            {"early_stopping": 2, "eval_every": 10},
            {"early_stopping": 2, "eval_every": 20},
            "config.train.eval_every (10, now 20)",
        ),
    ],
)
def test_what_a_run_learns_from_must_not_change(
    tmp_path: Path, before: dict[str, Any], now: dict[str, Any], change: str
) -> None:
    assert first_change(record(tmp_path, **before), record(tmp_path, **now)) == change
