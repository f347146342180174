"""On a GPU the host learns a step later whether a step was skipped, with the same results."""

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch
from host_waits import host_waits
from parallel_runs import changed, train_with
from run_equality import assert_equal_runs, logged
from torch import Tensor

from mnmt_data.store import open_prepared
from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, run_configs, train
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.checkpoints.state import read_progress
from mnmt_model.distributed.copies import HostCopy
from mnmt_model.distributed.world import World
from mnmt_model.optim import adafactor
from mnmt_model.training import trainer
from mnmt_model.training.trainer import Trainer

SPOILT = (1, 3, 6, 7)
"""Steps whose gradients are not finite; checkpoints are at 5, 10 and 12, lines of the log at 4, 8 and 12."""


@pytest.fixture(params=["adafactor", "adamw", "experts"])
def run(request: pytest.FixtureRequest, study_file: Path, results: Path) -> RunConfig:
    run = run_configs(read_study(study_file), results / "data")[1]
    if request.param == "experts":
        model = dataclasses.replace(
            run.model, num_experts=4, experts_every=1, experts_per_token=1, renormalise="never"
        )
        return changed(dataclasses.replace(run, model=model), balance_bias_rate=0.01)
    return changed(run, optimizer=request.param, learning_rate=0.01, clip_norm=0.5)


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Callable[[Iterable[int]], None]:
    """What spoils the gradients of steps."""
    clip_gradients, step = trainer.clip_gradients, Trainer._step
    steps: list[int] = []

    def spoilt(spoilt_steps: Iterable[int]) -> None:
        def clip(params: list[Tensor], clip_norm: float) -> Tensor:
            if steps[-1] in spoilt_steps:
                for p in params:
                    p.grad = torch.full_like(p, torch.nan)
            return clip_gradients(params, clip_norm)

        monkeypatch.setattr(trainer, "clip_gradients", clip)

    def record(self: Trainer, number: int) -> None:
        steps.append(number)
        step(self, number)

    monkeypatch.setattr(Trainer, "_step", record)
    return spoilt


def ask_later(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (adafactor, trainer):
        monkeypatch.setattr(module, "runs_behind", lambda device: True)


def test_skipped_steps_change_nothing_but_are_counted(
    run: RunConfig, tmp_path: Path, spoil: Callable[..., None]
) -> None:
    spoil(SPOILT)
    train(run, tmp_path)
    assert [line["skipped"] for line in logged(tmp_path)] == [2, 4, 4]
    spoil(range(1, 13))
    still = changed(run, max_skipped=12)
    train(still, tmp_path / "still")
    first, last = (
        read_progress(path).extras["guard"] for path in find_checkpoints(tmp_path / "still/checkpoints")
    )
    assert (first, last) == ({"norms": [], "in_a_row": 10}, {"norms": [], "in_a_row": 12})


def test_results_do_not_depend_on_when_the_host_asks(
    run: RunConfig, tmp_path: Path, spoil: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(SPOILT)
    train(run, tmp_path / "at once")
    ask_later(monkeypatch)
    train(run, tmp_path / "later")
    assert_equal_runs(tmp_path / "later", tmp_path / "at once")


@pytest.mark.parametrize("later", [False, True])
def test_the_step_that_ends_a_run_is_named(
    run: RunConfig, tmp_path: Path, spoil: Callable[..., None], monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    spoil(SPOILT)
    if later:
        ask_later(monkeypatch)
    message = "the gradient norm is nan at step 7, after 1 skipped step; lower"
    with pytest.raises(RunError, match=message):
        train(changed(run, max_skipped=1), tmp_path)


def test_a_step_waits_for_nothing_but_the_decision_of_the_step_before(
    run: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_later(monkeypatch)
    # The seed of dropout is read from the CPU's generator.
    many = changed(run, dropout=0.0, skip_above=3.0, steps=100, log_every=100)
    trained = Trainer(many, tmp_path, open_prepared(run.data), World())
    trained._step(1)
    reads: list[HostCopy] = []

    def read(self: HostCopy) -> list[float]:
        reads.append(self)
        return [1.0, 1.0, 1.0]

    monkeypatch.setattr(HostCopy, "read", read)
    with host_waits() as waits:
        trained._step(2)
    trained.close()
    # The batch's sources and targets are in the CPU's memory in any case.
    assert waits == ["nonzero", "nonzero"]
    assert len(reads) == 1


@pytest.mark.slow
@pytest.mark.parametrize("run", ["adafactor", "adamw"], indirect=True)
def test_processes_skip_the_steps_that_one_skips(run: RunConfig, tmp_path: Path) -> None:
    often = changed(run, dropout=0.0, skip_above=1.1, max_skipped=50, steps=80, log_every=1, parallel="fsdp")
    train(often, tmp_path / "alone")
    assert train_with(2, often, tmp_path / "run") == [0, 0]
    lines, expected = logged(tmp_path / "run"), logged(tmp_path / "alone")
    assert [line["skipped"] for line in lines] == [line["skipped"] for line in expected]
    assert 2 < expected[-1]["skipped"] < 20
    norms = [line["grad_norm"] for line in expected]
    assert [line["grad_norm"] for line in lines] == pytest.approx(norms, rel=1e-4)
