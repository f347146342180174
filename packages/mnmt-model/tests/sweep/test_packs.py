import dataclasses
from pathlib import Path

import pytest

from mnmt_data.study import read_study
from mnmt_model import RunConfig, run_configs
from mnmt_model.sweep import packs
from mnmt_model.sweep.claims import claimable, units_of
from mnmt_model.sweep.packs import plan_units
from mnmt_model.sweep.workers import train_unit
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
    times = PackTimes(alone=0.8, packed=packed, compilation=60.0)
    monkeypatch.setattr(packs, "stored_times", lambda *_: times)
    assert sizes(long, tmp_path) == expected


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
