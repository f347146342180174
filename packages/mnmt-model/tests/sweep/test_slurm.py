"""Sweeps through a real Slurm, which the tests start on this machine."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from fake_training import STARTS, WEIGHTS, fake_runs, fake_train, final_value
from slurm_cluster import missing_programs, slurm_cluster

from mnmt_data.errors import DataError
from mnmt_data.jobs import ClusterConfig, SlurmWorkers
from mnmt_data.study import read_study
from mnmt_model import RunConfig, read_evals, read_run, run_configs, train
from mnmt_model.sweep.run_queue import RunQueue
from mnmt_model.sweep.workers import ClusterWork, TrainRun, train_run

PATIENCE_SECONDS = 120

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
    train: TrainRun = fake_train,
) -> RunQueue:
    work = ClusterWork(tuple(runs), folder, train)
    workers = SlurmWorkers(
        work, folder=folder.parent / "jobs", name="mnmt-test", config=config, detached=True
    )
    return RunQueue(runs, folder, workers, jobs=jobs)


def test_an_array_of_jobs_trains_every_run_once(slurm: Mapping[str, str], tmp_path: Path) -> None:
    runs = fake_runs(12)
    queue = slurm_queue(runs, tmp_path / "runs", jobs=3)
    assert queue.train() == 0
    assert {outcome.status for outcome in queue.outcomes(runs)} == {"finished"}
    assert all(starts(tmp_path / "runs" / run.name) == [0] for run in runs)
    assert len(submissions(tmp_path)) == 1
    assert submissions(tmp_path)[0]["tasks"] == 3


def test_a_job_whose_time_is_up_and_one_that_is_preempted_go_on_from_their_checkpoints(
    slurm: Mapping[str, str], tmp_path: Path
) -> None:
    runs, folder = fake_runs(2, steps=400), tmp_path / "runs"
    job = submitted(slurm_queue(runs, folder, jobs=2), tmp_path)
    for run in runs:
        wait_for(lambda run=run: (folder / run.name / WEIGHTS).exists())
    scancel("--signal=USR1", f"{job}_0")  # what Slurm does before the time is up
    subprocess.run(["scontrol", "requeue", f"{job}_1"], check=True)
    wait_for(lambda: {read_run(folder / run.name).status for run in runs} == {"interrupted"})
    assert slurm_queue(runs, folder, jobs=2).train() == 0
    for run in runs:
        first, *later = starts(folder / run.name)
        assert first == 0 < min(later)
        assert final_value(run) == value(folder / run.name)
        assert read_run(folder / run.name).attempts == 1
    assert [line["job"] for line in submissions(tmp_path)] == [job]


def test_two_processes_of_a_job_train_one_run_together(
    slurm: Mapping[str, str], study_file: Path, results: Path, tmp_path: Path
) -> None:
    runs = run_configs(read_study(study_file), results / "data")[:2]
    queue = slurm_queue(runs, tmp_path / "runs", config=ClusterConfig(processes=2), train=train_run)
    assert queue.train() == 0
    assert {outcome.status for outcome in queue.outcomes(runs)} == {"finished"}
    alone = tmp_path / "alone"
    train(runs[0], alone)
    losses, alone_losses = (read_evals(path) for path in (tmp_path / "runs" / runs[0].name, alone))
    assert [each.value for each in losses] == pytest.approx([each.value for each in alone_losses], rel=0.05)
    logs = [path.name for path in (tmp_path / "jobs").glob("*_log.out")]
    assert sorted(name.split("_")[1] for name in logs) == ["0", "1"]


def test_jobs_that_cannot_start_end_the_sweep_with_the_place_of_their_logs(
    slurm: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "nowhere")
    with pytest.raises(DataError, match=r"4 workers have ended without work; see .*/jobs"):
        slurm_queue(fake_runs(1), tmp_path / "runs").train()


def submitted(queue: RunQueue, folder: Path) -> str:
    """Submit the jobs of a queue, and return their number."""
    queue.look()
    return str(submissions(folder)[0]["job"])


def scancel(*arguments: str) -> None:
    subprocess.run(["scancel", *arguments], check=True)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def value(folder: Path) -> float:
    """Return the number that a run ended with; it must have ended once."""
    (line,) = (folder / "finished.jsonl").read_text().splitlines()
    return float(json.loads(line)["value"])


def starts(folder: Path) -> list[int]:
    """Return the steps from which a run was started."""
    return [json.loads(line)["step"] for line in (folder / STARTS).read_text().splitlines()]


def submissions(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "jobs/jobs.jsonl").read_text().splitlines()]
