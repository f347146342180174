import json
import subprocess
import sys
from pathlib import Path

import pytest


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
