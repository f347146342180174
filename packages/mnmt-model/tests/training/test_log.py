import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import torch

from mnmt_data.store import read_json_lines
from mnmt_model import RunError
from mnmt_model.training.balance import Reduce
from mnmt_model.training.gradient_step import StepLosses
from mnmt_model.training.log import StepResult, TrainingLog


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make_log(path: Path, clock: Clock, **options: Any) -> TrainingLog:
    options.setdefault("peak", lambda device, dtype: 1000.0)
    return TrainingLog(path, device=torch.device("cpu"), clock=clock, **options)


def step_result(
    step: int, *, grad_norm: float = 0.5, lr: float = 0.25, skipped: bool = False, **changes: Any
) -> StepResult:
    losses: dict[str, Any] = {
        "objective": torch.tensor(30.0),
        "nats": torch.tensor(20.0),
        "src_tokens": 6,
        "tgt_tokens": 10,
        "cells": 20,
    }
    return StepResult(
        step=step,
        losses=StepLosses(**(losses | changes)),
        flops=800,
        grad_norm=grad_norm,
        lr=lr,
        skipped=skipped,
    )


def test_a_line_of_two_steps(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path / "metrics.jsonl", clock)
    log.add(step_result(1))
    log.add(step_result(2, nats=torch.tensor(40.0), tgt_tokens=14, grad_norm=1.5, lr=0.125))
    clock.now += 4.0
    log.write(1036, data_seconds=0.5)
    assert (tmp_path / "metrics.jsonl").read_text() == (
        '{"step": 2, "tokens": 1036, "loss": 2.5, "objective": 2.5, "lr": 0.125, "grad_norm": 1.5, '
        '"skipped": 0, "tokens_per_second": 9, "mfu": 0.4, "data_wait": 0.125, "padding": 0.1}\n'
    )


def test_each_line_starts_anew(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path / "metrics.jsonl", clock)
    log.add(step_result(1, nats=torch.tensor(999.0)))
    clock.now += 50.0
    log.write(16)
    log.add(step_result(2))
    clock.now += 2.0
    line = log.write(32)
    assert (line["loss"], line["objective"], line["tokens_per_second"], line["mfu"]) == (2.0, 3.0, 8, 0.4)
    assert list(read_json_lines(tmp_path / "metrics.jsonl"))[-1] == line


def test_a_skipped_step_has_no_part_in_the_loss_but_in_the_rates(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path / "metrics.jsonl", clock)
    log.add(step_result(1))
    log.add(step_result(2, nats=torch.tensor(math.nan), grad_norm=math.inf, skipped=True))
    clock.now += 2.0
    line = log.write(32)
    assert (line["loss"], line["objective"], line["skipped"], line["grad_norm"]) == (2.0, 3.0, 1, None)
    assert (line["tokens_per_second"], line["mfu"]) == (16, 0.8)


def test_a_line_of_skipped_steps_only_is_valid_json(tmp_path: Path, clock: Clock) -> None:
    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    log = make_log(tmp_path / "metrics.jsonl", clock)
    log.add(step_result(1, nats=torch.tensor(math.nan), grad_norm=math.nan, skipped=True))
    clock.now += 1.0
    log.write(16)
    line = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=no_constant)
    assert (line["loss"], line["objective"], line["grad_norm"]) == (None, None, None)


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path / "metrics.jsonl", clock)
    log.add(step_result(7, nats=torch.tensor(math.inf)))
    with pytest.raises(RunError, match="the loss is inf at step 7; lower `learning_rate` or set `clip_norm`"):
        log.write(16)
    assert not (tmp_path / "metrics.jsonl").exists()


def test_a_resumed_run_writes_the_line_that_it_would_have(tmp_path: Path, clock: Clock) -> None:
    whole, first, resumed = (make_log(tmp_path / f"{name}.jsonl", clock) for name in "abc")
    for log in (whole, first):
        log.add(step_result(1, skipped=True))
        log.add(step_result(2, nats=torch.tensor(1 / 3)))
    resumed.restore(json.loads(json.dumps(first.state())))
    for log in (whole, resumed):
        log.add(step_result(3, nats=torch.tensor(2 / 7)))
    clock.now += 1.0
    expected, line = whole.write(16), resumed.write(16)
    assert line == expected
    assert line["skipped"] == 1


class Ranks:
    """Logs of several ranks, each in a thread of its own, whose sums are made in the order of ranks."""

    def __init__(self, logs: list[TrainingLog]) -> None:
        self.logs = logs
        self._parts: list[Any] = [None] * len(logs)
        self._barrier = Barrier(len(logs))

    def each(self, call: Callable[[TrainingLog, Reduce], Any]) -> list[Any]:
        def of(rank: int) -> Any:
            def reduce(tensor: torch.Tensor) -> torch.Tensor:
                self._parts[rank] = tensor
                self._barrier.wait()
                total = sum(self._parts)
                self._barrier.wait()
                return total

            return call(self.logs[rank], reduce)

        with ThreadPoolExecutor(len(self.logs)) as threads:
            return list(threads.map(of, range(len(self.logs))))


@pytest.mark.parametrize("size", [1, 3])
def test_resumed_ranks_write_the_line_that_they_would_have(tmp_path: Path, clock: Clock, size: int) -> None:
    def logs(name: str) -> Ranks:
        path = tmp_path / f"{name}.jsonl"
        return Ranks([make_log(path, clock, num_devices=size, rank=rank) for rank in range(size)])

    def add(ranks: Ranks, nats: list[float]) -> None:
        for log, value in zip(ranks.logs, nats, strict=False):
            log.add(step_result(1, nats=torch.tensor(value)))

    whole, first, resumed = map(logs, "abc")
    for ranks in (whole, first):
        # In float32 2^24 + 1 is 2^24, but 2^24 + 2 is not.
        add(ranks, [2.0**24, 1.0, 1.0])
    for log, state in zip(
        resumed.logs, first.each(lambda log, reduce: log.state(reduce=reduce)), strict=True
    ):
        log.restore(json.loads(json.dumps(state)))
    for ranks in (whole, resumed):
        add(ranks, [1.0, 1.0, 1.0])
    clock.now += 1.0
    lines = [ranks.each(lambda log, reduce: log.write(16, reduce=reduce)) for ranks in (whole, resumed)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (3, 2)])
def test_another_number_of_ranks_goes_on_from_the_sum_of_all(
    tmp_path: Path, clock: Clock, before: int, after: int
) -> None:
    first = Ranks([make_log(tmp_path / "a", clock, num_devices=before, rank=rank) for rank in range(before)])
    for log in first.logs:
        log.add(step_result(1, tgt_tokens=10 * before))
    state = first.each(lambda log, reduce: log.state(reduce=reduce))[0]
    resumed = Ranks([make_log(tmp_path / "b", clock, num_devices=after, rank=rank) for rank in range(after)])
    for log in resumed.logs:
        log.restore(state)
        log.add(step_result(2, tgt_tokens=10 * after))
    line = resumed.each(lambda log, reduce: log.write(16, reduce=reduce))[0]
    assert (line["loss"], line["objective"]) == (2.0, 3.0)


def test_ranks_reduce_one_tensor_and_get_the_same_line_that_one_writes(tmp_path: Path, clock: Clock) -> None:
    main = make_log(tmp_path / "metrics.jsonl", clock, num_devices=2)
    other = make_log(tmp_path / "other.jsonl", clock, num_devices=2, rank=1)
    main.add(step_result(1, nats=torch.tensor(5.0)))
    other.add(step_result(1, nats=torch.tensor(15.0)))
    clock.now += 1.0
    reduced = []

    def reduce(sums: torch.Tensor) -> torch.Tensor:
        reduced.append(sums.tolist())
        return torch.tensor([20.0, 60.0, 0.5])

    lines = [log.write(16, data_seconds=0.25, reduce=reduce) for log in (main, other)]
    assert lines[0] == lines[1]
    assert reduced == [[5.0, 30.0, 0.25], [15.0, 30.0, 0.25]]
    assert not (tmp_path / "other.jsonl").exists()
    (line,) = read_json_lines(tmp_path / "metrics.jsonl")
    assert (line["loss"], line["objective"], line["mfu"], line["data_wait"]) == (2.0, 6.0, 0.4, 0.25)


def test_the_peak_is_asked_for_at_a_line_and_its_time_does_not_count(tmp_path: Path, clock: Clock) -> None:
    asked: list[torch.dtype] = []

    def peak(device: torch.device, dtype: torch.dtype) -> float:
        asked.append(dtype)
        clock.now += 1000.0
        return 1000.0

    log = make_log(tmp_path / "metrics.jsonl", clock, peak=peak, dtype=torch.bfloat16)
    for step in (1, 2):
        assert len(asked) == step - 1
        log.add(step_result(step))
        clock.now += 2.0
        assert log.write(16 * step)["tokens_per_second"] == 8
    assert asked == [torch.bfloat16] * 2
