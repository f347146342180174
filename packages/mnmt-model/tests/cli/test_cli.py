import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "--preset", "tiny"], "no preset 'tiny'"),
        (["plan", "--presett", "tiny"], "--presett"),
        (["sweep", "missing.toml"], "missing.toml"),
        (
            ["train", "{study}", "nobody", "--out", "{results}"],
            "has no run 'nobody'; its runs are d16_xx-aa-1_seed1",
        ),
        (["sweep", "{study}", "--out", "elsewhere"], "mnmt-data prepare"),
        (
            ["sweep", "{study}", "--out", "{results}", "--jobs", "0"],
            '"0" for --jobs. Must be >= 1.',
        ),
        (["plan", "{study}", "--jobs", "1000000"], 'Invalid value "1000000" for --jobs. Must be <= 10000.'),
        (["tune", "{study}", "--trials", "0"], 'Invalid value "0" for --trials. Must be >= 1.'),
        (
            ["plan", "--preset", "m4-t96l", "--vocab-size", "1000000000"],
            "`vocab_size` must be in 1…10,000",
        ),
        (["sweep", "{study}", "--minutes", "-1"], "`minutes` must be at least 1, but is -1"),
        (
            ["sweep", "none.toml", "--cluster", "slurm", "--slurm.qos", "high"],
            "none.toml: no such study file",
        ),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    command: Callable[..., Any], study_file: Path, results: Path, arguments: list[str], message: str
) -> None:
    result = command(*(argument.format(study=study_file, results=results) for argument in arguments))
    assert result.status == 2
    assert result.stderr.startswith("mnmt-model: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


def test_a_batch_too_small_is_refused_before_a_run_begins(
    command: Callable[..., Any], study_file: Path, results: Path, tmp_path: Path
) -> None:
    study, data = tmp_path / "study.toml", tmp_path / "results" / "data"
    study.write_text(re.sub(r"batch_tokens = \d+", "batch_tokens = 3", study_file.read_text()))
    data.parent.mkdir()
    data.symlink_to(results / "data")
    result = command("sweep", study, "--out", data.parent)
    assert result.status == 2
    assert "must have at most `batch_tokens` (3)." in result.stderr.splitlines()[-1]
    assert not list(data.parent.glob("runs/*/run.json"))


def test_sweep_trains_everything_and_says_so(
    command: Callable[..., Any], study_file: Path, results: Path
) -> None:
    result = command("sweep", study_file, "-o", results, "-j", 2)
    assert result.status == 0, result.stderr
    first, following = result.stdout.splitlines()
    assert first.startswith(f"5 of 5 runs finished in {results / 'runs'}; their training times add up to ")
    assert following == f"next: mnmt-eval score {results / 'runs'}, then mnmt-laws report {results / 'runs'}"


@pytest.mark.slow
def test_a_sweep_killed_outright_leaves_no_process_training(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    endless = tmp_path / "endless.toml"
    text = (
        study_file.read_text()
        .replace("steps = 12", "steps = 1_000_000")
        .replace("log_every = 4", "log_every = 50")
    )
    endless.write_text(text, encoding="utf-8")
    (tmp_path / "data").symlink_to(results / "data")
    command = [
        sys.executable,
        "-m",
        "mnmt_model",
        "sweep",
        str(endless),
        "--out",
        str(tmp_path),
        "--jobs",
        "1",
    ]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not (logs := list(tmp_path.glob("runs/*/metrics.jsonl"))) or not logs[0].read_text():
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    # The lock is free once the process that trained is gone.
    with FileLock(logs[0].with_name(".lock"), timeout=120):
        pass
