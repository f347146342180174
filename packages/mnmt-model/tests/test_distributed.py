"""Training by several gloo processes is training by one."""

import dataclasses
import json
import os
import socket
from pathlib import Path

import pytest
import torch
from torch import multiprocessing
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from mnmt_data.study import read_study
from mnmt_model import RunError, RunPlan, load_run, plan_runs, train
from mnmt_model.run_record import read_evals, read_run
from mnmt_model.training.watcher import Watcher

EXACT = {"rel": 2e-5}


class StopAt(Watcher):
    """Ends the first process in the middle, as a kill does; the others notice."""

    def __init__(self, at: int) -> None:
        self.at = at

    def step(self, step: int) -> None:
        if step == self.at:
            os._exit(1)


def train_rank(rank: int, size: int, port: int, plan: RunPlan, folder: Path, stop_at: int) -> None:
    torch.set_num_threads(1)
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
    }
    train(plan, folder, watchers=[StopAt(stop_at)])


def train_with(size: int, plan: RunPlan, folder: Path, *, stop_at: int = 0) -> None:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(train_rank, args=(size, port, plan, folder, stop_at), nprocs=size)


def changed(plan: RunPlan, **changes: object) -> RunPlan:
    return dataclasses.replace(plan, train=dataclasses.replace(plan.train, **changes))


def curve(folder: Path) -> list[float]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line[key] for line in lines for key in ("loss", "objective", "grad_norm")]


def measured(folder: Path) -> dict[tuple[str, str], float]:
    return {(e.task, e.testset): e.value for e in read_evals(folder)}


@pytest.fixture(scope="module")
def plan(study_file: Path, results: Path) -> RunPlan:
    """Without dropout, whose masks processes draw for themselves."""
    plan = plan_runs(read_study(study_file), results / "data")[1]
    return changed(plan, dropout=0.0, clip_norm=0.5, label_smoothing=0.1, z_loss=1e-4, log_every=2)


@pytest.fixture(scope="module")
def alone(plan: RunPlan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    train(plan, folder)
    return folder


@pytest.mark.parametrize(("size", "parallel"), [(2, "ddp"), (2, "fsdp"), (4, "fsdp")])
def test_losses_are_those_of_one_process(
    plan: RunPlan, alone: Path, tmp_path: Path, size: int, parallel: str
) -> None:
    train_with(size, changed(plan, parallel=parallel, accumulation=2), tmp_path / "run")
    assert curve(tmp_path / "run") == pytest.approx(curve(alone), **EXACT)
    assert measured(tmp_path / "run") == pytest.approx(measured(alone), **EXACT)
    assert read_run(tmp_path / "run")["status"] == "finished"


@pytest.mark.parametrize("optimizer", ["adafactor", "adamw"])
def test_sharded_checkpoints_go_on_at_another_number_of_processes(
    plan: RunPlan, tmp_path: Path, optimizer: str
) -> None:
    sharded = changed(plan, parallel="fsdp", optimizer=optimizer, learning_rate=0.01)
    train(sharded, tmp_path / "alone")
    with pytest.raises((ProcessExitedException, ProcessRaisedException)):
        train_with(2, sharded, tmp_path / "run", stop_at=6)
    (checkpoint,) = (tmp_path / "run" / "checkpoints").iterdir()
    assert len(list(checkpoint.glob("model-*-of-00002.safetensors"))) == 2
    train(sharded, tmp_path / "run")
    assert curve(tmp_path / "run") == pytest.approx(curve(tmp_path / "alone"), **EXACT)
    ours, theirs = (load_run(tmp_path / run).model.model.state_dict() for run in ("run", "alone"))
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], rtol=1e-3, atol=1e-5)


def test_batches_too_small_for_the_parts_are_refused(plan: RunPlan, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"`batch_tokens` \(300\) makes batches of \d+ pairs, too few for 1 "):
        train(changed(plan, accumulation=1000), tmp_path / "run")


def test_accumulation_changes_no_loss(plan: RunPlan, alone: Path, tmp_path: Path) -> None:
    train(changed(plan, accumulation=3), tmp_path / "run")
    assert curve(tmp_path / "run") == pytest.approx(curve(alone), **EXACT)
