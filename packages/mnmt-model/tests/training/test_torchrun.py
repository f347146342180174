"""Stopping and failing under torchrun itself, by two processes."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ranks import run_ranks, train_and_stop
from run_equality import assert_equal_runs, logged

from mnmt_data.study import read_study
from mnmt_model import run_configs, train
from mnmt_model.runs.run_record import read_run

pytestmark = pytest.mark.slow
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def torchrun(study: Path, run: str, out: Path) -> subprocess.Popen[str]:
    """Start two processes that train a run together."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "mnmt_model", "train", str(study), run, "--out", str(out)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def write_study(study_file: Path, results: Path, folder: Path, **settings: object) -> tuple[Path, str]:
    """Write the tiny study with other settings beside its data; return it and the name of a run."""
    folder.mkdir(exist_ok=True)
    text = study_file.read_text()
    for name, value in settings.items():
        text = re.sub(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
    (folder / "data").symlink_to(results / "data")
    path = folder / "tiny.toml"
    path.write_text(text, encoding="utf-8")
    return path, run_configs(read_study(path), folder / "data")[1].name


def test_the_reason_of_a_failure_is_the_last_that_one_reads(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    study, run = write_study(study_file, results, tmp_path, batch_tokens=12)
    with torchrun(study, run, tmp_path) as process:
        _, stderr = process.communicate(timeout=120)
    assert process.returncode != 0
    last = [line for line in stderr.splitlines() if line.strip("= ")][-1]
    assert re.search(
        r"mnmt-model: `batch_tokens` \(12\) makes batches of 1 pairs, too few for 2 processes", last
    )


def test_all_processes_stop_after_the_same_step(study_file: Path, results: Path, tmp_path: Path) -> None:
    study, name = write_study(study_file, results, tmp_path, steps=300, checkpoint_every=100)
    run = {run.name: run for run in run_configs(read_study(study), tmp_path / "data")}[name]
    stopped = tmp_path / "runs" / name
    with torchrun(study, name, tmp_path) as process:
        while not list(stopped.glob("metrics.jsonl")) or not logged(stopped):
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode != 0
    record = read_run(stopped)
    assert re.match(r"interrupted by SIGTERM after step \d+; ", record.error or "")
    assert record.status == "interrupted"
    assert run_ranks(2, train_and_stop, run, stopped, 0, logs=tmp_path) == [0, 0]
    assert run_ranks(2, train, run, tmp_path / "whole", logs=tmp_path) == [0, 0]
    assert_equal_runs(stopped, tmp_path / "whole")
