import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from run_equality import logged
from safetensors.torch import load_file

from mnmt_data.store.description import PreparedDescription
from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, load_run, run_configs, train
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.runs import open_data
from mnmt_model.runs.run_record import read_evals, read_run, write_run
from mnmt_model.training.watcher import Watcher


@pytest.fixture(scope="module")
def run(study_file: Path, results: Path) -> RunConfig:
    return run_configs(read_study(study_file), results / "data")[1]


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


class KillAt(Watcher):
    def __init__(self, at: int) -> None:
        self.at = at

    def step(self, step: int) -> None:
        if step == self.at:
            raise Killed


class Steps(Watcher):
    def __init__(self) -> None:
        self.done: list[int] = []

    def step(self, step: int) -> None:
        self.done.append(step)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(find_checkpoints(folder / "checkpoints")[-1] / "model.safetensors")


DROPLESS = {"capacity_factor": 0.0, "expert_feed_forward": "gated-silu", "shared_experts": 1}

BALANCED = {
    "auxiliary_loss_over": "batch",
    "router_z_loss": 0.01,
    "balance_bias_rate": 0.01,
    "accumulation": 2,
}


@pytest.fixture(scope="module")
def runs(run: RunConfig) -> dict[str, RunConfig]:
    """Return runs of a dense model, of experts with few slots, of gated ones without a limit, and of one
    expert a token, with biases of the checkpoint.
    """
    model = dataclasses.replace(run.model, decoder_layers=2, num_experts=4, capacity_factor=1.0)
    train_config = dataclasses.replace(run.train, uniform_routing_steps=3)
    experts = dataclasses.replace(run, model=model, train=train_config)
    dropless = dataclasses.replace(experts, model=dataclasses.replace(model, **DROPLESS))
    single = dataclasses.replace(model, experts_per_token=1, renormalise="never")
    balanced = dataclasses.replace(run, model=single, train=dataclasses.replace(run.train, **BALANCED))
    return {"dense": run, "experts": experts, "dropless": dropless, "balanced": balanced}


Whole = Callable[[str], Path]


@pytest.fixture(scope="module")
def whole(runs: dict[str, RunConfig], tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """What returns the folder of one of these runs, trained without a stop."""
    folder = tmp_path_factory.mktemp("whole")

    @cache
    def trained(name: str) -> Path:
        train(runs[name], folder / name)
        return folder / name

    return trained


@pytest.fixture
def finished(whole: Whole, tmp_path: Path) -> Path:
    """A copy of the finished dense run."""
    return Path(shutil.copytree(whole("dense"), tmp_path / "run"))


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (7, "dense"),
        *(pytest.param(step, "dense", marks=pytest.mark.slow) for step in (1, 5, 11)),
        pytest.param(7, "experts", marks=pytest.mark.slow),
        pytest.param(7, "dropless", marks=pytest.mark.slow),
        (7, "balanced"),
    ],
)
def test_killed_and_resumed_equals_never_stopped(
    runs: dict[str, RunConfig], whole: Whole, tmp_path: Path, step: int, name: str
) -> None:
    run, killed, expected = runs[name], tmp_path / "killed", whole(name)
    with pytest.raises(Killed):
        train(run, killed, watchers=[KillAt(step)])
    assert read_run(killed).status == "running"
    train(run, killed)
    expected_weights, killed_weights = weights(expected), weights(killed)
    assert all(torch.equal(expected_weights[name], killed_weights[name]) for name in expected_weights)
    assert logged(killed) == logged(expected)
    assert read_evals(killed) == read_evals(expected)


def test_a_resumed_run_repeats_at_most_the_steps_since_its_checkpoint(run: RunConfig, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(run, tmp_path / "run", watchers=[KillAt(11)])
    steps = Steps()
    train(run, tmp_path / "run", watchers=[steps])
    assert steps.done == [11, 12]
    assert [line["step"] for line in logged(tmp_path / "run")] == [4, 8, 12]


def test_a_run_that_another_process_trains_is_left_alone(run: RunConfig, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with FileLock(tmp_path / "run" / ".lock"), pytest.raises(RunError, match="another process is writing it"):
        train(run, tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


def test_every_task_is_evaluated_also_those_not_trained_on(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    only_aa = run_configs(read_study(study_file), results / "data")[0]
    train(only_aa, tmp_path / "run")
    evals = read_evals(tmp_path / "run")
    cells = {(e.step, e.task, e.testset) for e in evals}
    assert cells == {(12, task, split) for task in ("xx-aa", "xx-bb") for split in ("dev", "test")}
    assert all(e.value > 0 and e.tokens > 0 and e.flops > 0 for e in evals)


def test_another_run_in_the_same_folder_is_refused(run: RunConfig, finished: Path) -> None:
    other = dataclasses.replace(run, seed=2)
    with pytest.raises(
        RunError, match=r"run\.json: was trained with another seed \(1, now 2\); set it back, or"
    ):
        train(other, finished)


def test_how_a_run_is_computed_and_kept_may_change(run: RunConfig, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(run, tmp_path / "run", watchers=[KillAt(7)])
    other = dataclasses.replace(run.train, accumulation=2, keep_checkpoints=1, log_every=6)
    train(dataclasses.replace(run, train=other), tmp_path / "run")
    record = read_run(tmp_path / "run")
    assert (record.status, record.config["train"]["accumulation"]) == ("finished", 2)


def test_data_prepared_anew_in_another_way_are_refused(run: RunConfig, results: Path, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(run, tmp_path / "run", watchers=[KillAt(7)])
    shutil.copytree(results / "data", tmp_path / "data")
    description = PreparedDescription.read(tmp_path / "data")
    changed = dataclasses.replace(
        description, fingerprint="another", config={**description.config, "seed": 7}
    )
    changed.write(tmp_path / "data")
    message = (
        r"run\.json: was trained on other prepared data: \[data\] `seed` was 1 and is 7; prepare the old"
    )
    with pytest.raises(RunError, match=message):
        train(dataclasses.replace(run, data=tmp_path / "data"), tmp_path / "run")
    record = dataclasses.replace(read_run(tmp_path / "run"), data="../data")
    write_run(tmp_path / "run", record)
    with pytest.raises(RunError, match=r"trained on other data than .*data: \[data\] `seed` was 1 and is 7"):
        open_data(tmp_path / "run")


def test_other_test_sets_keep_a_run_usable(run: RunConfig, results: Path, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(run, tmp_path / "run", watchers=[KillAt(7)])
    shutil.copytree(results / "data", tmp_path / "data")
    description = PreparedDescription.read(tmp_path / "data")
    config = {**description.config, "test_corpora": {"news": "corpora/news"}}
    dataclasses.replace(description, fingerprint="another", config=config).write(tmp_path / "data")
    write_run(tmp_path / "run", dataclasses.replace(read_run(tmp_path / "run"), data="../data"))
    assert open_data(tmp_path / "run").fingerprint == "another"


def test_training_ends_early_where_the_dev_loss_falls_no_more(run: RunConfig, tmp_path: Path) -> None:
    stopping = dataclasses.replace(run.train, steps=500, eval_every=2, early_stopping=2, learning_rate=1e-9)
    train(dataclasses.replace(run, train=stopping), tmp_path / "run")
    record = read_run(tmp_path / "run")
    assert record.status == "finished"
    assert re.match(r"no lower dev loss than \d+\.\d+ in 2 evaluations", record.stopped or "")
    last = max(e.step for e in read_evals(tmp_path / "run"))
    assert last < 500
    assert {e.testset for e in read_evals(tmp_path / "run") if e.step == last} == {"dev", "test"}


def test_dev_and_test_sets_are_measured_on_schedules_of_their_own(run: RunConfig, tmp_path: Path) -> None:
    measured = dataclasses.replace(run.train, eval_every=4, test_every=6)
    train(dataclasses.replace(run, train=measured), tmp_path / "run")
    evaluations = {(e.step, e.testset) for e in read_evals(tmp_path / "run")}
    assert evaluations == {(4, "dev"), (6, "test"), (8, "dev"), (12, "dev"), (12, "test")}


def test_the_best_checkpoints_stay(run: RunConfig, tmp_path: Path) -> None:
    best = dataclasses.replace(run.train, eval_every=2, keep_best=2, keep_checkpoints=1)
    train(dataclasses.replace(run, train=best), tmp_path / "run")
    dev = {}
    for e in read_evals(tmp_path / "run"):
        if e.testset == "dev":
            dev.setdefault(e.step, []).append(e.value)
    ranked = sorted(dev, key=lambda step: sum(dev[step]) / len(dev[step]))
    steps = {
        int(path.name.removeprefix("step-")) for path in find_checkpoints(tmp_path / "run" / "checkpoints")
    }
    assert steps == {*ranked[:2], 12}


def test_a_damaged_checkpoint_is_left_for_the_one_before(
    run: RunConfig, whole: Whole, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Killed):
        train(run, tmp_path / "run", watchers=[KillAt(11)])
    with (find_checkpoints(tmp_path / "run" / "checkpoints")[-1] / "model.safetensors").open("r+b") as file:
        file.truncate(100)
    train(run, tmp_path / "run")
    assert "training continues from step 5" in caplog.text
    assert logged(tmp_path / "run") == logged(whole("dense"))


def test_a_diverging_run_is_recorded_as_failed(run: RunConfig, tmp_path: Path) -> None:
    wild = dataclasses.replace(
        run, train=dataclasses.replace(run.train, optimizer="adamw", learning_rate=1e30)
    )
    with pytest.raises(
        RunError, match="the gradient norm is nan at step 12, after 10 skipped steps; lower `learning_rate`"
    ):
        train(wild, tmp_path / "run")
    record = read_run(tmp_path / "run")
    assert record.status == "failed"
    assert (record.error or "").startswith("the gradient norm is nan at step 12")


def test_a_loaded_run_scores_the_next_token(run: RunConfig, whole: Whole) -> None:
    loaded = load_run(whole("dense"))
    src = torch.tensor([[3, 6, 1]])
    state = loaded.model.encode(src, src == 0)
    log_probs, _ = loaded.model.step(state, torch.zeros(1, dtype=torch.int64))
    torch.testing.assert_close(log_probs.exp().sum(), torch.tensor(1.0))
    assert (loaded.progress.step, loaded.record.status) == (12, "finished")
    assert loaded.data.resolve() == run.data.resolve()


KILLED = """
import os, signal, sys
from pathlib import Path
from mnmt_data.study import read_study
from mnmt_model import run_configs, train
from mnmt_model.training.watcher import Watcher

class Kill(Watcher):
    def step(self, step):
        if step == 7:
            os.kill(os.getpid(), signal.SIGKILL)

study, data, folder = map(Path, sys.argv[1:])
train(run_configs(read_study(study), data)[1], folder, watchers=[Kill()])
"""


@pytest.mark.slow
def test_a_process_killed_outright_goes_on_as_if_it_had_not_been(
    run: RunConfig, study_file: Path, results: Path, whole: Whole, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", KILLED, str(study_file), str(results / "data"), str(tmp_path / "run")]
    # One thread, as here: sums depend on how many there are.
    ended = subprocess.run(command, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert ended.returncode == -signal.SIGKILL
    train(run, tmp_path / "run")
    assert logged(tmp_path / "run") == logged(whole("dense"))
    assert read_evals(tmp_path / "run") == read_evals(whole("dense"))
    expected = weights(whole("dense"))
    assert all(torch.equal(expected[name], tensor) for name, tensor in weights(tmp_path / "run").items())
