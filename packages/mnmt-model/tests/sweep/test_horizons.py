import dataclasses
import shutil
from pathlib import Path

import pytest
from ranks import SignalAt
from run_equality import assert_equal_runs, logged

from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, run_configs, train, train_runs
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.errors import Interrupted
from mnmt_model.runs import Branch
from mnmt_model.runs.run_record import read_evals, read_run
from mnmt_model.sweep.next_run import is_ready


@pytest.fixture(scope="module")
def runs(study_file: Path, results: Path, tmp_path_factory: pytest.TempPathFactory) -> list[RunConfig]:
    """A trunk of 24 steps, and its branches of 8 and 12."""
    path = tmp_path_factory.mktemp("horizons") / "horizons.toml"
    keys = "horizons = [8, 12, 24]\ncooldown_steps = 12\nwarmup_steps = 2\neval_every = 3"
    path.write_text(study_file.read_text().replace("steps = 12", keys), encoding="utf-8")
    return run_configs(read_study(path), results / "data")[:3]


@pytest.fixture(scope="module")
def trained(runs: list[RunConfig], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the three runs, trained one after the other."""
    folder = tmp_path_factory.mktemp("trained")
    for run in runs:
        train(run, folder / run.name)
    return folder


def test_each_horizon_but_the_last_is_a_branch(runs: list[RunConfig]) -> None:
    trunk = runs[0].name
    assert [run.name for run in runs] == [trunk, f"{trunk}_h8", f"{trunk}_h12"]
    assert [run.branch for run in runs] == [None, Branch(run=trunk, step=4), Branch(run=trunk, step=6)]
    assert [(run.train.steps, run.train.cooldown_steps) for run in runs] == [(24, 12), (8, 4), (12, 6)]
    assert [run.steps for run in runs] == [24, 4, 6]


def ordinary(run: RunConfig) -> RunConfig:
    """Return the run of a branch's length that is trained from its first step."""
    return dataclasses.replace(run, branch=None)


@pytest.mark.parametrize("number", [1, 2])
def test_a_branch_equals_an_ordinary_run_of_its_length(
    runs: list[RunConfig], trained: Path, tmp_path: Path, number: int
) -> None:
    branch = runs[number]
    assert branch.branch is not None
    train(ordinary(branch), tmp_path)
    assert_equal_runs(trained / branch.name, tmp_path, after=branch.branch.step)


def test_a_trunk_equals_a_run_without_horizons_and_keeps_where_branches_leave(
    runs: list[RunConfig], trained: Path, tmp_path: Path
) -> None:
    alone = dataclasses.replace(runs[0], train=dataclasses.replace(runs[0].train, horizons=()))
    train(alone, tmp_path)
    assert logged(trained / runs[0].name) == logged(tmp_path)
    assert read_evals(trained / runs[0].name) == read_evals(tmp_path)
    steps = [
        [path.name[-2:] for path in find_checkpoints(folder / "checkpoints")]
        for folder in (trained / runs[0].name, tmp_path)
    ]
    assert steps == [["04", "06", "20", "24"], ["20", "24"]]


def test_measurements_say_whether_they_are_annealed(runs: list[RunConfig], trained: Path) -> None:
    annealed = [{(line.step, line.annealed) for line in read_evals(trained / run.name)} for run in runs]
    assert annealed[0] == {(step, step == 24) for step in range(3, 25, 3)}
    assert annealed[1:] == [{(6, False), (8, True)}, {(9, False), (12, True)}]


def test_trunk_and_branch_go_on_after_an_interruption(
    runs: list[RunConfig], trained: Path, tmp_path: Path
) -> None:
    for run, step in ((runs[0], 5), (runs[0], 14), (runs[2], 8)):
        with pytest.raises(Interrupted):
            train(run, tmp_path / run.name, watchers=[SignalAt(step)])
    for run in (runs[0], runs[2]):
        train(run, tmp_path / run.name)
        assert_equal_runs(tmp_path / run.name, trained / run.name)


def test_a_branch_can_start_once_its_trunk_is_there(runs: list[RunConfig], tmp_path: Path) -> None:
    trunk, branch = runs[0], runs[1]
    assert [is_ready(run, tmp_path) for run in (trunk, branch)] == [True, False]
    message = rf"{branch.name}: leaves {trunk.name} at step 4, .* \(it is not yet trained\); train "
    with pytest.raises(RunError, match=message):
        train(branch, tmp_path / branch.name)
    assert not (tmp_path / branch.name / "run.json").exists()
    with pytest.raises(Interrupted):
        train(trunk, tmp_path / trunk.name, watchers=[SignalAt(5)])
    assert is_ready(branch, tmp_path)
    train(branch, tmp_path / branch.name)
    assert read_run(tmp_path / branch.name).status == "finished"


def test_the_checkpoint_of_another_trunk_is_refused(
    runs: list[RunConfig], trained: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained / runs[0].name, tmp_path / runs[0].name)
    other = dataclasses.replace(runs[1], seed=2)
    with pytest.raises(RunError, match=r"_seed1/run\.json: was trained with another seed \(1, now 2\)"):
        train(other, tmp_path / other.name)


def test_a_sweep_trains_branches_after_their_trunks(
    runs: list[RunConfig], trained: Path, tmp_path: Path
) -> None:
    outcomes = train_runs(runs[::-1], tmp_path, jobs=2)
    assert {outcome.status for outcome in outcomes} == {"finished"}
    for run in runs:
        assert_equal_runs(tmp_path / run.name, trained / run.name)
