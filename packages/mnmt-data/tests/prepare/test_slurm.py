"""Preparation by jobs of a real Slurm, which the tests start on this machine."""

import random
import subprocess
import time
from pathlib import Path

import pytest
from slurm_cluster import missing_programs, slurm_cluster

from mnmt_data.errors import DataError
from mnmt_data.prepare import ClusterConfig, prepare_study, workers
from mnmt_data.prepare.cluster import Cluster
from mnmt_data.prepare.shared_pool import SharedPool
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
    monkeypatch.setattr(workers, "STARTING_PAIRS", 0)

    def report(line):
        """Wait for the workers at the first stage."""
        if line.startswith("clean"):
            queue = tmp_path / "together/.data.queue"
            wait_for(lambda: len(list(queue.glob("*/*.worker"))) == 2)

    data = prepare_study(
        study, tmp_path / "together", jobs=2, cluster="slurm", cluster_config=ONE_CORE, report=report
    )
    assert contents(data.folder) == alone
    wait_for(lambda: not jobs_of("mnmt-shared"))


def test_jobs_that_slurm_refuses_are_one_line(tmp_path):
    config = ClusterConfig(minutes=10, partition="nowhere")
    cluster = Cluster("slurm", jobs=1, logs=tmp_path / "jobs", name="mnmt-refused", config=config)
    with pytest.raises(DataError, match=r"^sbatch failed: .*invalid partition"):
        SharedPool(tmp_path / "queue", cluster, report=print, outputs=tmp_path)


def test_a_job_that_is_killed_is_replaced_and_one_that_waits_is_cancelled(tmp_path):
    cluster = Cluster("slurm", jobs=2, logs=tmp_path / "jobs", name="mnmt-killed", config=ONE_CORE)
    reports = []
    pool = SharedPool(tmp_path / "queue", cluster, report=reports.append, outputs=tmp_path)
    wait_for(lambda: pool.tend() or "workers: 2" in reports)
    subprocess.run(["scancel", "--signal=KILL", "--full", jobs_of("mnmt-killed")[0]], check=True)
    wait_for(lambda: pool.tend() or "workers: 1" in reports)
    wait_for(lambda: pool.tend() or reports[-1] == "workers: 2")
    text = "__import__('time').sleep(0.2) or __import__('os').getpid()"
    futures = [pool.submit(eval, text) for _ in range(30)]
    assert len({future.result() for future in futures}) == 3, reports
    cluster.start(Path(pool.queue.folder), 20)
    pool.shutdown()
    wait_for(lambda: not jobs_of("mnmt-killed"))


def test_work_whose_time_is_up_is_done_by_another(tmp_path):
    cluster = Cluster("slurm", jobs=1, logs=tmp_path / "jobs", name="mnmt-limit", config=ONE_CORE)
    reports, flag = [], tmp_path / "flag"
    flag.touch()
    pool = SharedPool(tmp_path / "queue", cluster, report=reports.append, outputs=tmp_path)
    wait_for(lambda: pool.tend() or "workers: 1" in reports)
    work = f"not __import__('os').path.exists('{flag}') or \
(__import__('os').remove('{flag}'), __import__('time').sleep(600))"
    future = pool.submit(eval, work)
    wait_for(lambda: not flag.exists())
    subprocess.run(["scancel", "--signal=USR2", *jobs_of("mnmt-limit")], check=True)
    wait_for(lambda: pool.tend() or "workers: 0" in reports)
    assert future.result() is True
    pool.shutdown()
