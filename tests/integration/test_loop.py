"""The loop of a study: advice at a target size, its prediction, and the models that it is held against."""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from mnmt_model import read_run

ROOT = Path(__file__).resolve().parents[2]
GOAL = """
[sweep.sizes.d20]
d_model = 20
d_ff = 40

[goal]
size = "d20"
importance = { xx-aa = 3, xx-bb = 1 }
"""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A study whose sweep is done, with a target."""

    folder: Path
    results: Path

    def call(self, command, name):
        """Call a command of the loop."""
        done = command(
            self.folder, "env", f"PYTHONPATH={ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            sys.executable, "-m", "studies.loop", name, "tiny.toml",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def loop(study, study_text, tmp_path):
    (tmp_path / "tiny.toml").write_text(study_text + GOAL, encoding="utf-8")
    shutil.copytree(study.results / "runs", tmp_path / "results/tiny/runs")
    (tmp_path / "results/tiny/data").symlink_to(study.results / "data")
    return Loop(folder=tmp_path, results=tmp_path / "results/tiny")


def scores_of(loop, run, task):
    """Return BLEU and chrF of a run on a task's test set, as text."""
    rows = map(json.loads, (loop.results / "runs" / run / "evals.jsonl").read_text().splitlines())
    values = {row["metric"]: row["value"] for row in rows if (row["task"], row["testset"]) == (task, "test")}
    return [f"{values[metric]:.1f}" for metric in ("bleu", "chrf")]


@pytest.mark.slow
def test_the_advised_mixture_and_equal_weights_are_trained_and_held_against_the_prediction(loop, command):
    before = {folder.name for folder in (loop.results / "runs").iterdir()}
    loop.call(command, "train")
    prediction = json.loads((loop.results / "target.json").read_text())
    trained = {folder.name for folder in (loop.results / "runs").iterdir()} - before
    assert trained == {name for part in prediction["mixtures"].values() for name in part["runs"]}
    records = [read_run(loop.results / "runs" / name) for name in trained]
    assert {(record.role, record.size) for record in records} == {("held-out", prediction["size"])}
    assert {"xx-aa": 0.5, "xx-bb": 0.5} in [record.mixture for record in records]
    done = command(loop.folder, "mnmt-eval", "score", "results/tiny/runs")
    assert done.returncode == 0, done.stderr
    lines = loop.call(command, "compare").splitlines()
    printed = [line.split()[-2:] for line in lines if line.split()[0] in ("xx-aa", "xx-bb")]
    runs = [part["runs"] for part in prediction["mixtures"].values()]
    assert printed == [scores_of(loop, run, task) for (run,) in runs for task in ("xx-aa", "xx-bb")]
    assert lines[-2] == prediction["answer"]
    assert lines[-1] == f"page: {(loop.results / 'report/index.html').as_uri()}"
    means = [float(line.split()[-1]) for line in lines if line.split()[0] == "mean"]
    gain = float(next(line for line in lines if line.startswith("gain")).split()[-1])
    assert gain == pytest.approx(means[1] - means[0], abs=2e-4)

    loop.call(command, "train")
    assert json.loads((loop.results / "target.json").read_text()) == prediction
    assert {folder.name for folder in (loop.results / "runs").iterdir()} == before | trained
