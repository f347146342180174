from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from fake_training import fake_runs

from mnmt_data.jobs import Heartbeat
from mnmt_data.jobs.claim import HEARTBEAT
from mnmt_data.store import write_json
from mnmt_model import RunConfig
from mnmt_model.runs import new_record, write_run
from mnmt_model.runs.run_record import utc_now
from mnmt_model.sweep.run_states import seconds_left, study_states


def record(runs: Sequence[RunConfig], folder: Path, **changes: Any) -> None:
    for run in runs:
        (folder / run.name).mkdir()
        new = new_record(run, folder / run.name, vocab_size=10, data=None)
        write_run(folder / run.name, replace(new, **changes))


def beat(runs: Sequence[RunConfig], folder: Path, *, seconds_left: float) -> None:
    """Write the heartbeats of runs that another machine trains, and that are half done."""
    for run in runs:
        heartbeat = Heartbeat(
            host="elsewhere", pid=1, time=utc_now(), step=5, steps=10, seconds_left=seconds_left
        )
        write_json(folder / run.name / HEARTBEAT, asdict(heartbeat))


@pytest.mark.parametrize(("jobs", "at_a_time"), [(1, 1), (2, 2), (8, 4), (None, 1)])
def test_runs_that_wait_take_as_long_as_those_that_have_finished(
    tmp_path: Path, jobs: int | None, at_a_time: int
) -> None:
    runs = fake_runs(8)
    record(runs[:4], tmp_path, status="finished", wall_seconds=60.0)
    assert seconds_left(study_states(runs, tmp_path), jobs=jobs) == pytest.approx(4 * 60 / at_a_time)


def test_runs_in_training_tell_the_time_of_those_that_wait(tmp_path: Path) -> None:
    runs = fake_runs(4)
    record(runs[:2], tmp_path)
    beat(runs[:2], tmp_path, seconds_left=60.0)
    assert seconds_left(study_states(runs, tmp_path)) == pytest.approx((60 + 60 + 2 * 120) / 2)
