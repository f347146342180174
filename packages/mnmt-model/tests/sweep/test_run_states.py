from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from fake_training import fake_runs

from mnmt_data.store import write_json
from mnmt_model import RunConfig
from mnmt_model.runs import Heartbeat, new_record, write_run
from mnmt_model.runs.heartbeat import HEARTBEAT
from mnmt_model.runs.run_record import utc_now
from mnmt_model.sweep.run_states import seconds_left, study_states


def record(runs: Sequence[RunConfig], folder: Path, **changes: Any) -> None:
    for run in runs:
        (folder / run.name).mkdir()
        new = new_record(run, folder / run.name, vocab_size=10, data=None)
        write_run(folder / run.name, replace(new, **changes))


def beat(runs: Sequence[RunConfig], folder: Path, *, pid: int, seconds_left: float) -> None:
    """Write the heartbeats of runs that one process of another machine trains, and that are half done."""
    for run in runs:
        heartbeat = Heartbeat(
            host="elsewhere", pid=pid, time=utc_now(), step=5, steps=10, seconds_left=seconds_left
        )
        write_json(folder / run.name / HEARTBEAT, asdict(heartbeat))


@pytest.mark.parametrize("jobs", [1, 2, 8, None])
def test_runs_of_a_pack_share_its_seconds(tmp_path: Path, jobs: int | None) -> None:
    runs = fake_runs(16)
    pack, rest = runs[:8], runs[8:]
    record(pack, tmp_path, status="finished", wall_seconds=240.0, pack=[run.name for run in pack])
    assert seconds_left(study_states(runs, tmp_path), jobs=jobs) == pytest.approx(240.0 / min(jobs or 1, 8))
    record(rest, tmp_path, status="interrupted", pack=[run.name for run in rest])
    assert seconds_left(study_states(runs, tmp_path), jobs=jobs) == pytest.approx(240.0)


def test_a_pack_in_training_tells_the_time_of_those_that_wait(tmp_path: Path) -> None:
    runs = fake_runs(24)
    for number in (0, 1):
        pack = runs[8 * number : 8 * number + 8]
        record(pack, tmp_path, pack=[run.name for run in pack])
        beat(pack, tmp_path, pid=number, seconds_left=60.0)
    # Two halves of packs are left, and runs that make up a whole one.
    assert seconds_left(study_states(runs, tmp_path)) == pytest.approx((60 + 60 + 120) / 2)
