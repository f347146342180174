import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file

from mnmt_data.study import read_study
from mnmt_model import RunError, RunPlan, load_run, plan_runs, train
from mnmt_model.checkpoint import checkpoints
from mnmt_model.run_record import read_evals, read_run


@pytest.fixture(scope="module")
def plan(study_file: Path, results: Path) -> RunPlan:
    return plan_runs(read_study(study_file), results / "data")[1]


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def kill_at(step: int):
    def on_step(done: int) -> None:
        if done == step:
            raise Killed

    return on_step


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoints(folder / "checkpoints")[-1] / "model.safetensors")


def logged(folder: Path) -> list[tuple[int, float]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [(line["step"], line["loss"]) for line in map(json.loads, lines)]


@pytest.mark.parametrize("step", [1, 5, 7, 11])
def test_killed_and_resumed_equals_never_stopped(plan: RunPlan, tmp_path: Path, step: int) -> None:
    train(plan, tmp_path / "whole")
    with pytest.raises(Killed):
        train(plan, tmp_path / "killed", on_step=kill_at(step))
    assert read_run(tmp_path / "killed")["status"] == "running"
    train(plan, tmp_path / "killed")
    whole, killed = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert all(torch.equal(whole[name], killed[name]) for name in whole)
    assert read_evals(tmp_path / "killed") == read_evals(tmp_path / "whole")


def test_a_resumed_run_repeats_at_most_the_steps_since_its_checkpoint(plan: RunPlan, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(plan, tmp_path / "run", on_step=kill_at(11))
    steps: list[int] = []
    train(plan, tmp_path / "run", on_step=steps.append)
    assert steps == [11, 12]
    assert [step for step, _ in logged(tmp_path / "run")] == [4, 8, 12]


def test_a_finished_run_is_left_alone(plan: RunPlan, tmp_path: Path) -> None:
    train(plan, tmp_path / "run")
    steps: list[int] = []
    train(plan, tmp_path / "run", on_step=steps.append)
    assert steps == []


def test_a_run_that_another_process_trains_is_left_alone(plan: RunPlan, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with FileLock(tmp_path / "run" / ".lock"), pytest.raises(RunError, match="trained by another process"):
        train(plan, tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_run_can_become_held_out(plan: RunPlan, tmp_path: Path) -> None:
    train(plan, tmp_path / "run")
    train(dataclasses.replace(plan, role="held-out"), tmp_path / "run")
    record = read_run(tmp_path / "run")
    assert (record["role"], record["status"]) == ("held-out", "finished")


def test_every_task_is_evaluated_also_those_not_trained_on(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    only_aa = plan_runs(read_study(study_file), results / "data")[0]
    train(only_aa, tmp_path / "run")
    evals = read_evals(tmp_path / "run")
    cells = {(e.step, e.task, e.testset) for e in evals}
    assert cells == {(12, task, split) for task in ("xx-aa", "xx-bb") for split in ("dev", "test")}
    assert all(e.value > 0 and e.tokens > 0 and e.flops > 0 for e in evals)


def test_another_plan_in_the_same_folder_is_refused(plan: RunPlan, tmp_path: Path) -> None:
    train(plan, tmp_path / "run")
    other = dataclasses.replace(plan, seed=2)
    with pytest.raises(RunError, match=r"run\.json: was trained with another seed; remove the folder"):
        train(other, tmp_path / "run")


def test_a_diverging_run_is_recorded_as_failed(plan: RunPlan, tmp_path: Path) -> None:
    wild = dataclasses.replace(
        plan, train=dataclasses.replace(plan.train, optimizer="adamw", learning_rate=1e30)
    )
    with pytest.raises(RunError, match="the loss is nan at step 4; lower `learning_rate`"):
        train(wild, tmp_path / "run")
    record = read_run(tmp_path / "run")
    assert record["status"] == "failed"
    assert record["error"].startswith("the loss is nan at step 4")


def test_a_loaded_run_scores_the_next_token(plan: RunPlan, tmp_path: Path) -> None:
    train(plan, tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    src = torch.tensor([[3, 6, 1]])
    state = loaded.model.encode(src, src == 0)
    log_probs, _ = loaded.model.step(state, torch.zeros(1, dtype=torch.int64))
    torch.testing.assert_close(log_probs.exp().sum(), torch.tensor(1.0))
    assert (loaded.record.step, loaded.record.status) == (12, "finished")
    assert loaded.data.resolve() == plan.data.resolve()


def test_a_process_killed_outright_resumes(study_file: Path, results: Path, tmp_path: Path) -> None:
    longer = tmp_path / "longer.toml"
    text = study_file.read_text().replace("steps = 12", "steps = 3000").replace("every = 5", "every = 50")
    longer.write_text(text, encoding="utf-8")
    name = plan_runs(read_study(longer), results / "data")[0].name
    out = tmp_path / "out"
    out.mkdir()
    (out / "data").symlink_to(results / "data")
    command = [sys.executable, "-m", "mnmt_model", "train", str(longer), name, "--out", str(out)]
    saved = out / "runs" / name / "checkpoints"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not checkpoints(saved):
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    newest = int(checkpoints(saved)[-1].name.removeprefix("step-"))
    with pytest.raises(Killed):
        train(
            plan_runs(read_study(longer), out / "data")[0], out / "runs" / name, on_step=kill_at(newest + 1)
        )
