import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mnmt_model", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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
        (["sweep", "{study}", "--out", "{results}", "--jobs", "0"], "--jobs must be at least 1, but is 0"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    study_file: Path, results: Path, arguments: list[str], message: str
) -> None:
    filled = [a.format(study=study_file, results=results) for a in arguments]
    done = run(*filled)
    assert done.returncode == 2
    assert done.stderr.startswith("mnmt-model: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_sweep_trains_everything_and_says_so_in_json(study_file: Path, results: Path) -> None:
    done = run("sweep", study_file, "--out", results, "--jobs", "2", "--json")
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert len(runs) == 5
    assert {row["status"] for row in runs} == {"finished"}


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
    with FileLock(logs[0].with_name(".lock"), timeout=30):
        length = len(logs[0].read_text())
        time.sleep(0.5)
        assert len(logs[0].read_text()) == length
