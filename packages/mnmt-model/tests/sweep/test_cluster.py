"""Sweeps through a real Slurm, which the tests start on this machine."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from fake_training import STARTS, fake_runs, fake_train
from slurm_cluster import missing_programs, slurm_cluster

from mnmt_model import RunConfig
from mnmt_model.sweep.claims import units_of
from mnmt_model.sweep.cluster import SlurmWorkers
from mnmt_model.sweep.cluster_config import ClusterConfig
from mnmt_model.sweep.run_queue import RunQueue
from mnmt_model.sweep.workers import TrainUnit

pytestmark = pytest.mark.slurm
ONE_CORE = ClusterConfig(minutes=10)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """A cluster in whose environment the module's tests run."""
    pytest.importorskip("submitit", reason="submitit is not installed")
    if missing := missing_programs():
        pytest.skip(f"Slurm cannot be started here: it needs {', '.join(missing)}")
    with (
        slurm_cluster(tmp_path_factory.mktemp("slurm") / "cluster") as environ,
        pytest.MonkeyPatch.context() as patch,
    ):
        here = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        for name, value in {**environ, "PYTHONPATH": here}.items():
            patch.setenv(name, value)
        patch.setattr(SlurmWorkers, "poll_seconds", 0.5)
        yield environ


def slurm_queue(
    runs: Sequence[RunConfig],
    folder: Path,
    *,
    jobs: int = 1,
    config: ClusterConfig = ONE_CORE,
    train: TrainUnit = fake_train,
) -> RunQueue:
    units = units_of(runs, folder)
    workers = SlurmWorkers(
        units, folder, jobs_folder=folder.parent / "jobs", name="mnmt-test", config=config, train=train
    )
    return RunQueue(units, folder, workers, jobs=jobs)


def test_an_array_of_jobs_trains_every_run_once(slurm: Mapping[str, str], tmp_path: Path) -> None:
    runs = fake_runs(12)
    queue = slurm_queue(runs, tmp_path / "runs", jobs=3)
    assert queue.train() == 0
    assert {outcome.status for outcome in queue.outcomes(runs)} == {"finished"}
    assert all(starts(tmp_path / "runs" / run.name) == [0] for run in runs)
    assert len(submissions(tmp_path)) == 1
    assert submissions(tmp_path)[0]["tasks"] == 3


def starts(folder: Path) -> list[int]:
    """Return the steps from which a run was started."""
    return [json.loads(line)["step"] for line in (folder / STARTS).read_text().splitlines()]


def submissions(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "jobs/jobs.jsonl").read_text().splitlines()]
