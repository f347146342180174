from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.store import open_prepared
from mnmt_data.study import read_study
from mnmt_model.sweep import step_time
from mnmt_model.sweep.step_time import MOST_MODELS, StepTime, Work, measure_steps, step_seconds
from mnmt_model.sweep.sweep_config import run_configs

TIMES = [StepTime(flops=100, seconds=1.0), StepTime(flops=10_000, seconds=4.0)]


@pytest.mark.parametrize(("flops", "seconds"), [(1, 1), (100, 1), (1000, 2), (10_000, 4), (20_000, 8)])
def test_times_are_read_off_between_those_measured(flops: int, seconds: float) -> None:
    assert step_seconds(TIMES, flops) == pytest.approx(seconds)


@given(flops=st.lists(st.integers(1, 10**9), min_size=2, max_size=2))
def test_more_flops_never_take_less_time(flops: list[int]) -> None:
    few, many = sorted(flops)
    assert step_seconds(TIMES, few) <= step_seconds(TIMES, many) * (1 + 1e-9)


def test_models_are_measured_once_each_and_threads_put_back(study_file: Path, results: Path) -> None:
    data = open_prepared(results / "data")
    runs = run_configs(read_study(study_file), results / "data")
    works = [Work(run=run, flops=run.model.d_model) for run in runs]
    before = torch.get_num_threads()
    measured = measure_steps(works, data, threads=2, seconds=0.01)
    assert torch.get_num_threads() == before
    assert [time.flops for time in measured] == [16, 24]
    assert all(time.seconds > 0 for time in measured)
    assert len(measured) <= MOST_MODELS


def test_a_model_beyond_this_machine_is_not_tried(study_file: Path, results: Path) -> None:
    data = open_prepared(results / "data")
    runs = run_configs(read_study(study_file), results / "data")
    assert measure_steps([Work(run=runs[0], flops=1)], data, threads=1, seconds=1e-6) == []


def test_experts_are_not_tried_without_their_package(
    study_file: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_time, "find_spec", lambda name: None)
    data = open_prepared(results / "data")
    run = run_configs(read_study(study_file), results / "data")[0]
    with_experts = replace(run, model=replace(run.model, num_experts=4))
    assert measure_steps([Work(run=with_experts, flops=1)], data, threads=1, seconds=0.01) == []


def test_what_exceeds_the_memory_is_left_out(
    study_file: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> StepTime:
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(step_time, "_measure", fail)
    data = open_prepared(results / "data")
    run = run_configs(read_study(study_file), results / "data")[0]
    assert measure_steps([Work(run=run, flops=1)], data, threads=1, seconds=1.0) == []
