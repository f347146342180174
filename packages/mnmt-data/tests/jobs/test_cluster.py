"""Jobs of Slurm, through a submitit and an squeue of the test's own."""

import json
import signal
import sys
from types import ModuleType, SimpleNamespace

import pytest

from mnmt_data.errors import DataError
from mnmt_data.jobs import ClusterConfig, SlurmWorkers
from mnmt_data.jobs.cluster import ClusterJob


class FakeExecutor:
    """Numbers the jobs that it is given."""

    def __init__(self, folder, max_num_timeout):
        self.folder, self.parameters, self.submitted = folder, {}, []

    def update_parameters(self, **parameters):
        self.parameters |= parameters

    def batch(self):
        self.submitted.append([])
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def submit(self, job):
        if self.parameters["job_name"] == "refused":
            from submitit.core.utils import FailedJobError

            raise FailedJobError("sbatch: error: invalid partition\nsbatch: fatal: no Slurm")
        self.submitted[-1].append(job)
        return SimpleNamespace(job_id=f"{len(self.submitted)}_{len(self.submitted[-1]) - 1}")


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Put the fakes in place; `calls` notes scancel, and the file `queue` is what squeue prints."""
    modules = {name: ModuleType(name) for name in ("submitit", "submitit.core", "submitit.core.utils")}
    modules["submitit"].SlurmExecutor = FakeExecutor
    modules["submitit"].helpers = SimpleNamespace(DelayedSubmission=lambda job: ("again", job))
    modules["submitit.core.utils"].FailedJobError = type("FailedJobError", (Exception,), {})
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    scripts = {"squeue": f"cat {tmp_path / 'queue'}", "scancel": f'echo "$@" >> {tmp_path / "calls"}'}
    for name, script in scripts.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    return tmp_path


def workers_of(folder, **options):
    return SlurmWorkers(int, folder=folder / "jobs", name="mnmt-test", config=ClusterConfig(), **options)


def test_jobs_are_submitted_as_arrays_and_counted_by_squeue(slurm):
    workers = workers_of(slurm)
    assert workers.alive() == 0
    workers.start(3)
    assert workers.alive() == 3  # while Slurm does not answer
    (slurm / "queue").write_text("1_0\n1_2\n7_0\n")
    assert workers.alive() == 2
    workers.start(1)
    (slurm / "queue").write_text("1_0\n2_0\n")
    assert workers.alive() == 2
    assert [len(jobs) for jobs in workers._executor.submitted] == [3, 1]
    lines = (slurm / "jobs/jobs.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"job": "1", "tasks": 3}, {"job": "2", "tasks": 1}]
    assert workers_of(slurm).alive() == 2  # those of an earlier call
    assert workers.describe() == f"see the newest log in {slurm / 'jobs'}"


@pytest.mark.parametrize("detached", [False, True])
def test_jobs_are_cancelled_with_their_leader_unless_they_are_detached(slurm, detached):
    for _ in range(2):  # Those of an earlier call end by themselves.
        workers = workers_of(slurm, detached=detached)
        workers.stop(signal.SIGKILL)
        workers.start(2)
    workers.stop(signal.SIGTERM)
    assert (slurm / "calls").exists() is not detached
    assert detached or (slurm / "calls").read_text() == "1\n"


def test_an_sbatch_that_fails_is_one_line(slurm):
    workers = SlurmWorkers(int, folder=slurm / "jobs", name="refused", config=ClusterConfig())
    with pytest.raises(DataError, match=r"^sbatch failed: invalid partition; no Slurm$"):
        workers.start(1)


def test_a_missing_submitit_or_slurm_is_one_line(slurm, monkeypatch):
    def refuse(folder, **options):
        raise RuntimeError("Could not detect srun")

    monkeypatch.setattr(sys.modules["submitit"], "SlurmExecutor", refuse)
    with pytest.raises(DataError, match="--cluster slurm needs Slurm"):
        workers_of(slurm)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(DataError, match=r"^--cluster slurm needs the extra `cluster`: pip install"):
        workers_of(slurm)


def test_a_job_whose_time_is_up_is_queued_again(slurm):
    signals = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: signals.append(number))
    try:
        for status, expected in ((0, []), (143, []), (128 + signal.SIGUSR1, [signal.SIGUSR1])):
            job = ClusterJob(lambda status=status: status)
            with pytest.raises(SystemExit) as ended:
                job()
            assert (ended.value.code, signals) == (status, expected)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert job.checkpoint() == ("again", job)


def test_what_a_job_asks_of_slurm():
    config = ClusterConfig(nodes=2, gpus_per_node=4, cpus_per_task=8, minutes=30, slurm={"qos": "high"})
    assert (config.tasks_per_node, config.num_tasks) == (4, 8)
    assert ClusterConfig(processes=3, gpus_per_node=4).tasks_per_node == 3
    assert config.parameters() == {
        "nodes": 2,
        "ntasks_per_node": 4,
        "gpus_per_node": 4,
        "cpus_per_task": 8,
        "time": 30,
        "setup": ["export SUBMITIT_PREEMPT_SIGNAL=USR1"],
        "srun_args": ["--kill-on-bad-exit=1", "--cpus-per-task=8"],
        "stderr_to_stdout": True,
        "additional_parameters": {"requeue": True, "signal": "USR1@120", "qos": "high"},
    }


@pytest.mark.parametrize("name", ["nodes", "processes", "cpus_per_task", "minutes"])
def test_numbers_below_1_are_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1, but is 0"):
        ClusterConfig(**{name: 0})
