"""Runs that end with a reason in one line."""

import math
from pathlib import Path

import pytest
import torch

from mnmt_data.study import read_study
from mnmt_model import Eval, RunConfig, RunError, append_evals, run_configs, train
from mnmt_model.runs.run_record import EVALS, read_run
from mnmt_model.training import evaluator
from mnmt_model.training.trainer import Trainer


@pytest.fixture(scope="module")
def run(study_file: Path, results: Path) -> RunConfig:
    return run_configs(read_study(study_file), results / "data")[0]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_evaluation_that_is_not_finite_fails_the_run_and_is_not_written(
    run: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    monkeypatch.setattr(evaluator, "losses_by_task", lambda *_, **options: iter([("xx-aa", value)]))
    message = f"the dev loss of xx-aa is {value} at step 12; lower `learning_rate` or set `clip_norm`"
    with pytest.raises(RunError, match=message):
        train(run, tmp_path)
    record = read_run(tmp_path)
    assert (record.status, record.error) == ("failed", message)
    assert not (tmp_path / EVALS).read_text()


def test_no_score_that_is_not_finite_is_written(tmp_path: Path) -> None:
    score = Eval(
        step=1, tokens=1, flops=1, task="xx-aa", testset="test", metric="ter", value=math.nan, signature=""
    )
    with pytest.raises(RunError, match="ter of test xx-aa is nan at step 1; it is not written down"):
        append_evals(tmp_path, [score])
    assert not (tmp_path / EVALS).exists()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried"
        ),
    ],
)
def test_a_model_that_does_not_fit_is_told_what_makes_it_smaller(
    run: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(self: Trainer, *arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(Trainer, "_advance", fail)
    takes = rf"{run.name} does not fit into the memory of cpu; its weights, .* take [\d.]+ \wiB, and"
    with pytest.raises(RunError, match=takes) as raised:
        train(run, tmp_path)
    line = str(raised.value)
    assert "\n" not in line
    for remedy in ("accumulation", "activation_checkpointing", "batch_tokens", "precision", "fsdp"):
        assert f"`{remedy}" in line or f'"{remedy}"' in line
    assert read_run(tmp_path).error == line


def test_other_errors_keep_their_own_words(
    run: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Trainer, *arguments: object, **options: object) -> None:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(Trainer, "_advance", fail)
    with pytest.raises(RuntimeError, match="shapes differ"):
        train(run, tmp_path)
    assert read_run(tmp_path).error == "shapes differ"
