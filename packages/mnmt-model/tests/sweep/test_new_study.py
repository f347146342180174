"""The runs of a new study: how many, how large and how long, for a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mnmt_data.stream import Mixture
from mnmt_data.study import StudyFile, read_study
from mnmt_model.errors import RunError
from mnmt_model.sweep import SweepConfig, new_study
from mnmt_model.sweep.new_study import SHARE, _Speed, new_runs
from mnmt_model.sweep.study_check import check_study
from mnmt_model.sweep.study_plan import RunCost
from mnmt_model.train_config import TrainConfig

TASKS = ("en-de", "en-fr", "en-uk")
JOBS = 2
START, FIXED = 3.0, 0.5


def cost(width: int, tasks: tuple[str, ...], epochs: float) -> RunCost:
    """The cost of 600 steps of a width."""
    size = 36 * width**2
    return RunCost(
        name=f"d{width}",
        role="fit",
        mixture=dict.fromkeys(tasks, 1 / len(tasks)),
        size=size,
        active_size=size,
        num_params=size,
        steps=600,
        tokens=600 * new_study.BATCH_TOKENS,
        flops=size,
        state_bytes=size,
        epochs=dict.fromkeys(tasks, epochs),
        evaluation_tokens=90 * new_study.BATCH_TOKENS,
    )


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch):
    """A function that chooses runs on a machine of known speed."""

    def choose(seconds, tasks=TASKS, *, speed=1.0, epochs=0.1):
        def measured(study, data, widths):
            fixed = dict.fromkeys(widths, FIXED)
            step = {width: (0.02 + 1e-5 * width**2) / speed for width in widths}
            costs = {width: cost(width, tasks, epochs) for width in widths}
            return costs, _Speed(start=START, fixed=fixed, step=step, jobs=JOBS)

        monkeypatch.setattr(new_study, "_measured", measured)
        data = {"data": {"tasks": list(tasks), "corpus": "text"}}
        study = StudyFile(path=Path("s.toml"), name="s", tables=data)
        runs = new_runs(study, Path("data"), shares=dict.fromkeys(tasks, 1.0), seconds=seconds)
        whole = replace(study, tables={**data, **runs.tables})
        check_study(whole)
        return runs, whole

    return choose


@pytest.mark.parametrize("tasks", [TASKS[:1], TASKS[:2], TASKS, (*TASKS, "en-es", "en-it")])
@pytest.mark.parametrize("seconds", [150, 300, 1800, 7200])
def test_the_runs_fill_the_time(choose, tasks, seconds) -> None:
    runs, study = choose(seconds, tasks, speed=8.0, epochs=1e-4)
    sweep, train = study.section("sweep", SweepConfig), study.section("train", TrainConfig)
    widths = [sweep.sizes[size]["d_model"] for _, size, _, _ in sweep.cells()]
    lengths = train.horizons or (train.steps,)
    assert runs.count == len(widths) * len(lengths)
    # A branch trains its cool-down, half of its length.
    steps = train.steps + sum(length / 2 for length in lengths[:-1])
    serial = sum(FIXED * len(lengths) + (0.02 + 1e-5 * width**2) / 8 * steps for width in widths)
    assert START + serial / JOBS <= runs.seconds * 1.0001
    assert 0.75 * SHARE * seconds < runs.seconds <= 1.02 * SHARE * seconds


@pytest.mark.parametrize("count", [2, 3, 5, 12, 20])
def test_mixtures_have_weights_that_laws_can_tell_apart(count) -> None:
    tasks = [f"en-x{letter}" for letter in "abcdefghijklmnopqrst"[:count]]
    mixtures = [Mixture.parse(mixture).weights for mixture in new_study._mixtures(tasks)]
    assert all(0 < weight < 1 for mixture in mixtures for weight in mixture.values())
    assert len({tuple(mixture.values()) for mixture in mixtures}) == 1 + 2 * count
    for task in tasks:
        assert len({mixture[task] for mixture in mixtures[: 1 + count]}) >= 3


def test_the_largest_size_is_held_out_and_a_rate_falls_with_the_width(choose) -> None:
    _, study = choose(7200, speed=50.0, epochs=1e-4)
    sweep = study.section("sweep", SweepConfig)
    widths = {name: changes["d_model"] for name, changes in sweep.sizes.items()}
    assert max(widths, key=lambda name: widths[name]) in sweep.held_out[0].sizes
    assert not set(sweep.held_out[0].sizes) & set(sweep.fit.sizes)
    rates = [changes.get("learning_rate", 0.05) for changes in sweep.sizes.values()]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.05


def test_a_faster_machine_trains_more(choose) -> None:
    trained = []
    for speed in (1.0, 4.0, 16.0, 64.0):
        runs, _ = choose(300, speed=speed, epochs=1e-4)
        trained.append(runs.sizes[-1] * runs.steps * runs.count)
    assert trained == sorted(trained)
    assert trained[0] < trained[-1]


def test_text_is_not_read_more_than_four_times(choose) -> None:
    _, study = choose(3000, speed=64.0, epochs=1.0)  # 600 steps read every task once
    sweep, train = study.section("sweep", SweepConfig), study.section("train", TrainConfig)
    heaviest = max(weight for _, _, mixture, _ in sweep.cells() for weight in mixture.values())
    assert train.steps > 600
    assert train.steps / 600 * heaviest * len(TASKS) <= 4


def test_a_time_that_is_too_short_costs_one_line(choose) -> None:
    with pytest.raises(RunError, match=r"3 tasks need [0-9.]+ minutes of training .* 0\.1 are left for it"):
        choose(5)


@pytest.mark.slow
def test_a_run_costs_more_than_its_steps(study_file: Path, results: Path) -> None:
    study = read_study(study_file)
    data_only = replace(study, tables={"data": study.tables["data"]})
    costs, speed = new_study._measured(data_only, results / "data", [8, 12, 16])
    assert [*costs] == [*speed.fixed] == [*speed.step] == [8, 12, 16]
    assert min(speed.start, *speed.fixed.values(), *speed.step.values()) > 0
    assert costs[8].size < costs[16].size
