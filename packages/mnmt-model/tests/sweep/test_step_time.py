from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.store import open_prepared
from mnmt_data.study import read_study
from mnmt_model.sweep import step_time
from mnmt_model.sweep.step_time import MOST_MODELS, Step, Work, activation_bytes, measure_steps, step_seconds
from mnmt_model.sweep.study_runs import run_configs

STEPS = [
    Step(flops=100, seconds=1.0, batch_tokens=10, activation_bytes=500),
    Step(flops=10_000, seconds=4.0, batch_tokens=10, activation_bytes=2000),
]


@pytest.mark.parametrize(("flops", "factor"), [(1, 1), (100, 1), (1000, 2), (10_000, 4), (20_000, 8)])
def test_times_and_memory_are_read_off_between_those_measured(flops: int, factor: float) -> None:
    assert step_seconds(STEPS, flops) == pytest.approx(factor)
    assert activation_bytes(STEPS, flops=flops, tokens=10) == 500 * factor
    assert activation_bytes(STEPS, flops=2 * flops, tokens=20) == 2 * 500 * factor


@given(flops=st.lists(st.integers(1, 10**9), min_size=2, max_size=2))
def test_more_flops_never_take_less_time(flops: list[int]) -> None:
    few, many = sorted(flops)
    assert step_seconds(STEPS, few) <= step_seconds(STEPS, many) * (1 + 1e-9)


def test_models_are_measured_once_each_and_threads_put_back(study_file: Path, results: Path) -> None:
    data = open_prepared(results / "data")
    runs = run_configs(read_study(study_file), results / "data")
    works = [Work(run=run, flops=run.model.d_model) for run in runs]
    before = torch.get_num_threads()
    measured = measure_steps(works, data, threads=2, seconds=0.01)
    assert torch.get_num_threads() == before
    assert [time.flops for time in measured] == [16, 24]
    assert all(time.seconds > 0 for time in measured)
    assert measured[0].activation_bytes < measured[1].activation_bytes < 2**24
    assert len(measured) <= MOST_MODELS


def test_what_exceeds_the_memory_is_left_out(
    study_file: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> Step:
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(step_time, "_measure", fail)
    data = open_prepared(results / "data")
    run = run_configs(read_study(study_file), results / "data")[0]
    assert measure_steps([Work(run=run, flops=1)], data, threads=1, seconds=1.0) == []
