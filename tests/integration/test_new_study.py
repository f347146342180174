"""A study that a command writes runs as it is, from text to advice."""

import json

import pytest

from mnmt_data.study import read_study
from mnmt_model import read_run
from mnmt_model.sweep import SweepConfig

TASKS = ("en-de", "en-fr", "en-uk")


@pytest.fixture
def written(tmp_path, command, made_up_text):
    """A folder with text of three tasks, and the study written for it."""
    (tmp_path / "text").mkdir()
    for task in TASKS:
        for side in task.split("-"):
            (tmp_path / f"text/train.{task}.{side}").write_text(made_up_text(side, 1500), encoding="utf-8")
    new = command(
        tmp_path, "mnmt-data", "new", "--tasks", ",".join(TASKS), "--corpus", "text", "--minutes", "3",
        "--name", "mine",
    )  # fmt: skip
    assert new.returncode == 0, new.stderr
    return tmp_path


@pytest.mark.slow
def test_a_new_study_ends_in_advice_for_its_goal(written, command):
    study = read_study(written / "studies/mine.toml")  # with all checks of all packages
    assert study.unchecked == ()
    runs = "results/mine/runs"
    for arguments in (
        ("mnmt-data", "prepare", "studies/mine.toml"),
        ("mnmt-model", "sweep", "studies/mine.toml"),
        ("mnmt-eval", "score", runs),
    ):
        done = command(written, *arguments)
        assert done.returncode == 0, done.stderr
    records = [read_run(path.parent) for path in (written / runs).glob("*/run.json")]
    assert len(records) == len([*study.section("sweep", SweepConfig).cells()])
    advice = command(written, "mnmt-laws", "recommend", runs, "--refits", "20", "--json")
    assert "the goal is" in advice.stderr
    weights = json.loads(advice.stdout)["weights"]
    assert set(weights) == set(TASKS)
    assert sum(weights.values()) == pytest.approx(1)
    # Twice the largest size that is fitted.
    largest = max(record.size for record in records if record.role == "fit")
    assert json.loads(advice.stdout)["size"] == pytest.approx(2 * largest)
