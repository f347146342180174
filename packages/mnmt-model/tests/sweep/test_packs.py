import dataclasses
from pathlib import Path

import pytest
from fake_training import fake_runs

from mnmt_data.store import file_lock
from mnmt_data.study import read_study
from mnmt_model import RunConfig, run_configs
from mnmt_model.runs.run_config import Branch, new_record
from mnmt_model.runs.run_record import LOCK, read_run, write_run
from mnmt_model.sweep import packs
from mnmt_model.sweep.claims import Unit, current_units, next_unit, units_of, unlocked
from mnmt_model.sweep.packs import plan_units
from mnmt_model.sweep.run_queue import RunQueue
from mnmt_model.sweep.workers import LocalWorkers, train_unit
from mnmt_model.training.pack import train_pack
from mnmt_model.training.pack_choice import PackTimes


@pytest.fixture(scope="module")
def runs(study_file: Path, results: Path) -> list[RunConfig]:
    """Two runs of the smaller size, and three of the larger."""
    return list(run_configs(read_study(study_file), results / "data"))


def with_pack(runs: list[RunConfig], number: int, **changes: object) -> list[RunConfig]:
    return [
        dataclasses.replace(run, train=dataclasses.replace(run.train, pack=number, **changes)) for run in runs
    ]


def claimable(units: list[Unit], folder: Path) -> list[Unit]:
    return [unit for unit, _ in unlocked(units, folder)]


def sizes(runs: list[RunConfig], folder: Path) -> list[int]:
    units = plan_units(runs, folder)
    assert sorted(run.name for unit in units for run in unit) == sorted(run.name for run in runs)
    assert all(len({repr((run.model, run.train)) for run in unit}) == 1 for unit in units)
    return sorted(len(unit) for unit in units)


@pytest.mark.parametrize(("pack", "expected"), [(1, [1, 1, 1, 1, 1]), (2, [1, 2, 2]), (3, [2, 3])])
def test_the_setting_bounds_packs_of_one_size(
    runs: list[RunConfig], tmp_path: Path, pack: int, expected: list[int]
) -> None:
    assert sizes(with_pack(runs, pack), tmp_path) == expected


def test_short_runs_are_not_packed_by_themselves(runs: list[RunConfig], tmp_path: Path) -> None:
    assert sizes(runs, tmp_path) == [1] * 5


@pytest.mark.parametrize(("packed", "expected"), [(0.1, [2, 3]), (0.9, [1] * 5)])
def test_long_runs_are_packed_unless_it_was_slower(
    runs: list[RunConfig],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    packed: float,
    expected: list[int],
) -> None:
    long = with_pack(runs, 0, steps=10_000)
    assert sizes(long, tmp_path) == [2, 3]
    assert [len(unit) for unit in plan_units(long, tmp_path, jobs=2)] == [1] * 5
    times = PackTimes(alone=0.8, stacked=0.9, packed=packed, compilation=60.0)
    monkeypatch.setattr(packs, "may_be_faster", lambda run, *_: times.pays(run.steps, compilation=60.0))
    assert sizes(long, tmp_path) == expected


def test_several_jobs_have_two_packs_each(runs: list[RunConfig], tmp_path: Path) -> None:
    many = [dataclasses.replace(run, name=f"run{seed}", seed=seed) for run in runs[:1] for seed in range(16)]
    for jobs, expected in [(1, [8] * 2), (2, [4] * 4), (3, [1] * 16)]:
        units = plan_units(with_pack(many, 0, steps=10_000), tmp_path, jobs=jobs)
        assert [len(unit) for unit in units] == expected


@pytest.mark.parametrize(
    ("count", "most", "expected"),
    [(20, 8, 5), (16, 8, 8), (9, 8, 5), (3, 2, 2), (5, 3, 3), (2, 8, 2), (1, 8, 1)],
)
def test_packs_are_equally_large_where_that_is_possible(count: int, most: int, expected: int) -> None:
    assert packs._pack_size(count, most) == expected


def test_several_processes_of_a_job_train_no_packs(runs: list[RunConfig], tmp_path: Path) -> None:
    assert {len(unit) for unit in plan_units(with_pack(runs, 3), tmp_path, packs=False)} == {1}


def test_runs_that_a_pack_gives_back_are_units_of_their_own_in_every_sweep(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    long = with_pack(runs, 0, steps=10_000)
    begun, later = units_of(long, tmp_path), [(run,) for run in long]
    assert len(begun) == 2
    give_back = [dataclasses.replace(run, train=dataclasses.replace(run.train, pack=1)) for run in begun[0]]
    assert not train_pack(give_back, [tmp_path / run.name for run in give_back])
    assert current_units(begun, tmp_path) == [*((run,) for run in begun[0]), begun[1]]
    assert sorted(map(len, units_of(long, tmp_path))) == sorted([1] * len(begun[0]) + [len(begun[1])])
    assert claimable(begun, tmp_path) == current_units(begun, tmp_path)
    with file_lock(tmp_path / begun[0][0].name / LOCK, name=tmp_path):
        assert next_unit(begun, tmp_path) == (begun[0][1],)
    assert current_units(later, tmp_path) == later


def test_runs_that_a_pack_gives_back_are_trained_by_all_workers(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    units = [tuple(runs[2:])]
    queue = RunQueue(units, tmp_path, LocalWorkers(units, tmp_path, jobs=2), jobs=2)
    assert queue.train() == 0
    records = [read_run(tmp_path / run.name) for run in runs[2:]]
    assert [(each.status, each.pack) for each in records] == [("finished", [run.name]) for run in runs[2:]]


def test_a_run_that_leaves_its_pack_ends_it_for_the_others(runs: list[RunConfig], tmp_path: Path) -> None:
    pack = next(unit for unit in units_of(with_pack(runs, 3), tmp_path) if len(unit) == 3)
    for run in pack:
        train_unit((run,), tmp_path)
        path = tmp_path / run.name
        write_run(
            path, dataclasses.replace(read_run(path), pack=[each.name for each in pack], absent=frozenset())
        )
    assert current_units([pack], tmp_path) == [pack]
    path = tmp_path / pack[1].name
    write_run(path, dataclasses.replace(read_run(path), pack=None))
    assert current_units([pack], tmp_path) == [(run,) for run in pack]


def test_branches_whose_trunk_is_lost_do_not_hold_up_their_pack(tmp_path: Path) -> None:
    trunks = fake_runs(3, steps=10)
    branches = tuple(
        dataclasses.replace(run, name=f"{run.name}_h6", branch=Branch(run=run.name, step=4)) for run in trunks
    )
    assert claimable([branches], tmp_path) == []
    for trunk in trunks:
        folder = tmp_path / trunk.name
        (folder / "checkpoints" / ("none" if trunk is trunks[0] else "step-00000004")).mkdir(parents=True)
        record = new_record(trunk, folder, vocab_size=10, data=None)
        write_run(folder, dataclasses.replace(record, status="failed", attempts=2))
    assert claimable([branches], tmp_path) == [branches[1:]]


def test_runs_that_were_begun_alone_stay_alone(runs: list[RunConfig], tmp_path: Path) -> None:
    forced = with_pack(runs, 3)
    train_unit((forced[0],), tmp_path)
    assert sizes(forced, tmp_path) == [1, 1, 3]


def test_a_pack_that_was_begun_stays_one_when_a_run_of_it_has_ended(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    forced = with_pack(runs, 3)
    pack = next(unit for unit in plan_units(forced, tmp_path) if len(unit) == 3)
    train_pack(pack, [tmp_path / run.name for run in pack], backend="eager")
    (tmp_path / pack[0].name / "run.json").write_text(
        (tmp_path / pack[0].name / "run.json").read_text().replace('"finished"', '"interrupted"', 1)
    )
    for pack_size in (0, 1, 2):
        units = units_of(with_pack(runs, pack_size), tmp_path)
        assert [run.name for run in pack] in [[run.name for run in unit] for unit in units]
        assert [run.name for run in pack] in [
            [run.name for run in unit] for unit in claimable(units, tmp_path)
        ]
