"""Two machines of two processes each hold a replica of the model each, sharded over their processes."""

import dataclasses
from pathlib import Path

import pytest
import torch
from parallel_runs import changed, curve, losses, train_with

from mnmt_data.study import read_study
from mnmt_model import RunConfig, load_run, run_configs, train
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.runs.run_record import read_evals

pytestmark = pytest.mark.slow
EXACT = {"rel": 2e-5}


@pytest.fixture(scope="module")
def run(study_file: Path, results: Path) -> RunConfig:
    run = run_configs(read_study(study_file), results / "data")[1]
    return changed(run, dropout=0.0, clip_norm=0.5, log_every=2, parallel="hsdp", learning_rate=0.01)


def parts(folder: Path) -> list[str]:
    checkpoint = find_checkpoints(folder / "checkpoints")[-1]
    return sorted(path.name for path in checkpoint.glob("model-*"))


@pytest.mark.parametrize("optimizer", ["adafactor", "adamw"])
def test_two_machines_train_as_one(run: RunConfig, tmp_path: Path, optimizer: str) -> None:
    run = changed(run, optimizer=optimizer)
    for machines in (1, 2):
        assert train_with(4, run, tmp_path / str(machines), machines=machines) == [0] * 4
    assert curve(tmp_path / "2") == pytest.approx(curve(tmp_path / "1"), **EXACT)
    assert losses(tmp_path / "2") == pytest.approx(losses(tmp_path / "1"), **EXACT)
    assert parts(tmp_path / "1") == [f"model-0000{rank}-of-00004.safetensors" for rank in range(4)]
    assert parts(tmp_path / "2") == [f"model-0000{rank}-of-00004.safetensors" for rank in range(2)]
    ours, theirs = (load_run(tmp_path / name).model.translation_model.state_dict() for name in "21")
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], rtol=1e-3, atol=1e-5)


def test_killed_and_resumed_equals_never_stopped(run: RunConfig, tmp_path: Path) -> None:
    dropped = changed(run, dropout=0.1)
    assert train_with(4, dropped, tmp_path / "whole", machines=2) == [0] * 4
    assert 0 not in train_with(4, dropped, tmp_path / "killed", machines=2, stop_at=6)
    assert train_with(4, dropped, tmp_path / "killed", machines=2) == [0] * 4
    assert curve(tmp_path / "killed") == curve(tmp_path / "whole")
    assert read_evals(tmp_path / "killed") == read_evals(tmp_path / "whole")


def test_a_checkpoint_of_two_machines_goes_on_alone(run: RunConfig, tmp_path: Path) -> None:
    train(run, tmp_path / "alone")
    assert 0 not in train_with(4, run, tmp_path / "run", machines=2, stop_at=6)
    train(run, tmp_path / "run")
    assert curve(tmp_path / "run") == pytest.approx(curve(tmp_path / "alone"), **EXACT)


def test_machines_divide_experts(run: RunConfig, tmp_path: Path) -> None:
    model = dataclasses.replace(run.model, decoder_layers=2, num_experts=4, capacity_factor=4.0)
    routed = changed(dataclasses.replace(run, model=model), expert_parallel=2)
    for machines in (1, 2):
        assert train_with(4, routed, tmp_path / str(machines), machines=machines) == [0] * 4
    assert curve(tmp_path / "2") == pytest.approx(curve(tmp_path / "1"), **EXACT)
    assert losses(tmp_path / "2") == pytest.approx(losses(tmp_path / "1"), **EXACT)


def test_machines_of_one_process_are_refused(run: RunConfig, tmp_path: Path) -> None:
    assert 0 not in train_with(2, run, tmp_path / "run", machines=2)
    message = '`parallel = "hsdp"` needs the same number of processes on every machine, at least 2; '
    assert f'{message}take "fsdp" or "ddp".' in (tmp_path / "rank0.log").read_text()
