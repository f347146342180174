"""Preparation by jobs of a real Slurm, which the tests start on this machine."""

import random
import subprocess
import time

import pytest
from slurm_cluster import missing_programs, slurm_cluster

from mnmt_data.jobs import ClusterConfig, Crew, JobPool, JobQueue, QueueWork, SlurmWorkers
from mnmt_data.prepare import prepare_study, stages
from mnmt_data.store.lock import file_lock
from mnmt_data.study import read_study

PATIENCE_SECONDS = 120
STUDY = """
name = "shared"
[data]
tasks = ["en-de", "de-en"]
corpus = "{folder}"
dev_sentences = 10
test_sentences = 10
[data.vocab]
kind = "word"
size = 100
"""
ONE_CORE = ClusterConfig(minutes=10)

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module", autouse=True)
def slurm(tmp_path_factory):
    """A cluster in whose environment the module's tests run."""
    pytest.importorskip("submitit", reason="submitit is not installed")
    if missing := missing_programs():
        pytest.skip(f"Slurm cannot be started here: it needs {', '.join(missing)}")
    with (
        slurm_cluster(tmp_path_factory.mktemp("slurm") / "cluster") as environ,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in environ.items():
            patch.setenv(name, value)
        yield


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def jobs_of(name):
    command = ["squeue", "--me", "--noheader", "--array", f"--name={name}", "--format=%i"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_jobs_of_slurm_write_the_same_bytes(tmp_path, monkeypatch):
    draw = random.Random(1)
    for language in ("en", "de"):
        words = [f"{language}{stem}" for stem in "abcdefghi"]
        lines = (" ".join(draw.choices(words, k=6)) for _ in range(400))
        (tmp_path / f"train.en-de.{language}").write_text("\n".join(lines) + "\n")
    (tmp_path / "study.toml").write_text(STUDY.format(folder=tmp_path))
    study = read_study(tmp_path / "study.toml")
    alone = contents(prepare_study(study, tmp_path / "alone", jobs=1).folder)
    monkeypatch.setattr(stages, "STARTING_PAIRS", 0)

    data = prepare_study(study, tmp_path / "together", jobs=2, cluster="slurm", cluster_config=ONE_CORE)
    assert contents(data.folder) == alone
    wait_for(lambda: not jobs_of("mnmt-shared"))


def test_a_job_that_is_killed_is_replaced_and_one_whose_time_is_up_goes_on(tmp_path):
    queue, leader = JobQueue(tmp_path / "queue"), tmp_path / "leader.lock"
    workers = SlurmWorkers(
        QueueWork(queue.folder, leader), folder=tmp_path / "jobs", name="mnmt-killed", config=ONE_CORE
    )
    with file_lock(leader, name="leader"):
        pool = JobPool(queue, Crew(workers, 2), outputs=tmp_path)
        text = "__import__('time').sleep(2) or __import__('os').getpid()"
        numbers = [pool.submit(eval, text) for _ in range(20)]
        first = [pool.result(number) for number in numbers[:2]]
        jobs = jobs_of("mnmt-killed")
        subprocess.run(["scancel", "--signal=KILL", "--full", jobs[0]], check=True)
        subprocess.run(["scancel", "--signal=USR1", jobs[1]], check=True)
        pids = {*first, *(pool.result(number) for number in numbers[2:])}
        assert len(pids) > 2
        pool.close()
    wait_for(lambda: not jobs_of("mnmt-killed"))
