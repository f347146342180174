from pathlib import Path

import pytest

from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, run_configs


@pytest.fixture(scope="module")
def runs(study_file: Path, results: Path) -> list[RunConfig]:
    return run_configs(read_study(study_file), results / "data")


def test_the_runs_are_sizes_times_mixtures_and_the_held_out(runs: list[RunConfig]) -> None:
    assert [(run.name, run.role) for run in runs] == [
        ("d16_xx-aa-1_seed1", "fit"),
        ("d16_xx-aa-0.3_xx-bb-0.7_seed1", "fit"),
        ("d24_xx-aa-1_seed1", "fit"),
        ("d24_xx-aa-0.3_xx-bb-0.7_seed1", "fit"),
        ("d24_xx-aa-0.5_xx-bb-0.5_seed1", "held-out"),
    ]
    assert [run.model.d_model for run in runs] == [16, 16, 24, 24, 24]


def test_tasks_that_are_not_prepared_are_named(study_file: Path, results: Path, tmp_path: Path) -> None:
    before, _, rest = study_file.read_text().partition("[data]")
    other = tmp_path / "other.toml"  # without a section [data]
    other.write_text(
        f"{before}[model]{rest.partition('[model]')[2]}".replace("xx-aa", "xx-cc"), encoding="utf-8"
    )
    with pytest.raises(RunError, match=r"other.toml: .*'xx-cc', but the prepared tasks are xx-aa, xx-bb"):
        run_configs(read_study(other), results / "data")
