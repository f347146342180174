"""Workers that submitit starts: they do jobs together, are replaced, and end with their leader."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import prepare_study, shared_pool, workers
from mnmt_data.prepare.cluster import Cluster
from mnmt_data.prepare.cluster_config import ClusterConfig
from mnmt_data.prepare.shared_pool import SharedPool, wait_for_orphans
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
LEAD = """
import sys
from pathlib import Path
from mnmt_data.prepare.cluster import Cluster
from mnmt_data.prepare.shared_pool import SharedPool
folder = Path(sys.argv[1])
cluster = Cluster("local", jobs=1, logs=folder / "jobs", name="test")
pool = SharedPool(folder / "queue", cluster, report=print, outputs=folder)
pool.submit(eval, "__import__('time').sleep(600)")
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def submitit():
    return pytest.importorskip("submitit")


@pytest.fixture
def pool_of(tmp_path):
    """Start pools of workers, which have begun when they are returned."""
    pools, reports = [], []

    def start(number):
        cluster = Cluster("local", jobs=number, logs=tmp_path / "jobs", name="test")
        pool = SharedPool(tmp_path / "queue", cluster, report=reports.append, outputs=tmp_path)
        pools.append(pool)
        wait_for(lambda: len(worker_pids(tmp_path)) == number)
        return pool, reports

    yield start
    for pool in pools:
        pool.shutdown()
    assert not (tmp_path / "queue").exists()


def worker_pids(folder):
    return [int(path.name.split(".")[-2]) for path in (folder / "queue").glob("*/*.worker")]


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def exists(pid):
    """Return whether a process runs; one that has ended and that nobody waits for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_two_workers_and_the_leader_share_jobs_and_one_that_is_killed_is_replaced(pool_of, tmp_path):
    """Two of the jobs kill the worker that begins them."""
    pool, reports = pool_of(2)
    text = "__import__('time').sleep(0.2) or (__import__('os').getpid(), {number})"
    killer = f"__import__('os').getpid() == {os.getpid()} or not __import__('os').path.exists('{{flag}}') or \
(__import__('os').remove('{{flag}}'), __import__('os').kill(__import__('os').getpid(), 9))"
    flags = [tmp_path / f"flag{number}" for number in range(2)]
    for flag in flags:
        flag.touch()
    futures = [pool.submit(eval, killer.format(flag=flag)) for flag in flags]
    wait_for(lambda: not any(flag.exists() for flag in flags))
    wait_for(lambda: pool.tend() or "workers: 2" in reports)
    futures += [pool.submit(eval, text.format(number=number)) for number in range(40)]
    results = [future.result() for future in futures][2:]
    assert [number for _, number in results] == list(range(40))
    assert os.getpid() in {pid for pid, _ in results}
    assert pool.queue.done_by_others > 0


def test_ctrl_c_is_left_to_the_leader(tmp_path):
    """A terminal sends it to all processes of the group."""
    # Processes that a shell started in the background ignore Ctrl-C, and so do their children.
    listen = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    (tmp_path / "lead.py").write_text(listen + LEAD + "pool.shutdown()\n")
    command = [sys.executable, tmp_path / "lead.py", tmp_path]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    leader = subprocess.Popen(command, start_new_session=True, **pipes)
    wait_for(lambda: list((tmp_path / "queue").glob("*/*.attempts")))
    (pid,) = worker_pids(tmp_path)
    os.killpg(leader.pid, signal.SIGINT)
    _, errors = leader.communicate()
    assert errors.count("Traceback") == errors.count("lead.py") == 1
    wait_for(lambda: not exists(pid))


def test_workers_end_when_their_leader_is_killed(tmp_path):
    leader = subprocess.Popen([sys.executable, "-c", LEAD, str(tmp_path)], stdin=subprocess.PIPE)
    wait_for(lambda: list((tmp_path / "queue").glob("*/*.attempts")))
    (pid,) = worker_pids(tmp_path)
    assert exists(pid)
    leader.kill()
    leader.communicate()
    wait_for(lambda: not exists(pid))
    wait_for_orphans(tmp_path / "queue")
    assert not (tmp_path / "queue").exists()


def test_a_worker_of_an_earlier_call_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_pool, "_ORPHAN_SECONDS", 0.0)
    (tmp_path / "queue/old").mkdir(parents=True)
    with (
        file_lock(tmp_path / "queue/old/host.3.worker", name="worker"),
        pytest.raises(DataError, match=r"host\.3\.worker: a worker of an earlier call has not ended"),
    ):
        wait_for_orphans(tmp_path / "queue")


def test_a_worker_that_does_not_end_with_its_leader_is_seen_by_the_next_call(tmp_path, monkeypatch):
    for name in ("_SHUTDOWN_SECONDS", "_ORPHAN_SECONDS"):
        monkeypatch.setattr(shared_pool, name, 0.0)
    monkeypatch.setattr(Cluster, "start", lambda self, queue, number: None)
    cluster = Cluster("local", jobs=1, logs=tmp_path / "jobs", name="test")
    pool = SharedPool(tmp_path / "queue", cluster, report=print, outputs=tmp_path)
    with file_lock(pool.queue.folder / "host.3.worker", name="worker"):
        pool.shutdown()
        with pytest.raises(DataError, match=r"host\.3\.worker: a worker of an earlier call has not ended"):
            wait_for_orphans(tmp_path / "queue")
    wait_for_orphans(tmp_path / "queue")
    assert not (tmp_path / "queue").exists()


def test_workers_that_cannot_begin_do_not_stop_the_leader(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "nowhere")
    monkeypatch.setattr(Cluster, "stop", lambda self: None)
    started = []
    monkeypatch.setattr(Cluster, "start", lambda self, queue, number: started.append(number))
    cluster = Cluster("local", jobs=2, logs=tmp_path / "jobs", name="test")
    pool = SharedPool(tmp_path / "queue", cluster, report=print, outputs=tmp_path)
    futures = [pool.submit(eval, str(number)) for number in range(5)]
    assert [future.result() for future in futures] == list(range(5))
    assert started == [2]
    pool.shutdown()


def test_a_cluster_that_refuses_jobs_is_told_and_leaves_nothing(tmp_path, monkeypatch):
    def refuse(cluster, queue, number):
        raise DataError("sbatch failed: invalid partition")

    monkeypatch.setattr(Cluster, "start", refuse)
    cluster = Cluster("local", jobs=1, logs=tmp_path / "jobs", name="test")
    with pytest.raises(DataError, match="invalid partition"):
        SharedPool(tmp_path / "queue", cluster, report=print, outputs=tmp_path)
    assert not (tmp_path / "queue").exists()


def test_workers_that_are_lost_without_work_are_replaced_a_few_times(tmp_path, monkeypatch):
    started, reports = [], []
    monkeypatch.setattr(Cluster, "stop", lambda self: None)
    monkeypatch.setattr(Cluster, "start", lambda self, queue, number: started.append(number))
    monkeypatch.setattr(shared_pool, "_TEND_SECONDS", 0.0)
    cluster = Cluster("local", jobs=1, logs=tmp_path / "jobs", name="test")
    pool = SharedPool(tmp_path / "queue", cluster, report=reports.append, outputs=tmp_path)
    for number in range(9):
        with file_lock(pool.queue.folder / f"host.{number}.worker", name="worker"):
            pool.tend()
        pool.tend()
    assert started == [1] * (1 + shared_pool.MAX_LOST)
    assert len([line for line in reports if "have ended without work" in line]) == 1
    pool.shutdown()


def test_a_job_of_several_workers_is_replaced_by_one_job(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(Cluster, "stop", lambda self: None)
    monkeypatch.setattr(Cluster, "start", lambda self, queue, number: started.append(number))
    monkeypatch.setattr(shared_pool, "_TEND_SECONDS", 0.0)
    cluster = Cluster("local", jobs=2, logs=tmp_path / "jobs", name="test")
    cluster.processes = 4
    pool = SharedPool(tmp_path / "queue", cluster, report=print, outputs=tmp_path)
    workers_of_job = [pool.queue.folder / f"host.{number}.worker" for number in range(cluster.processes)]
    for _ in range(2):
        with ExitStack() as stack:
            for path in workers_of_job:
                stack.enter_context(file_lock(path, name="worker"))
            pool.tend()
        pool.tend()
    assert started == [2, 1, 1]
    pool.shutdown()


def test_preparation_by_submitit_writes_the_same_bytes_while_workers_are_killed(tmp_path, monkeypatch):
    draw = random.Random(1)
    for language in ("en", "de"):
        lines = (
            " ".join(draw.choices([f"{language}{stem}" for stem in "abcdefghi"], k=6)) for _ in range(400)
        )
        (tmp_path / f"train.en-de.{language}").write_text("\n".join(lines) + "\n")
    (tmp_path / "study.toml").write_text(STUDY.format(folder=tmp_path))
    study = read_study(tmp_path / "study.toml")
    alone = contents(prepare_study(study, tmp_path / "alone", jobs=1).folder)
    monkeypatch.setattr(workers, "STARTING_PAIRS", 0)
    reports = []

    def report(line):
        """Wait for the workers at the first stage, and kill one of them."""
        reports.append(line)
        if line.startswith("clean"):
            queue = tmp_path / "together/.data.queue"
            wait_for(lambda: len(list(queue.glob("*/*.worker"))) == 2)
            os.kill(int(next(queue.glob("*/*.worker")).name.split(".")[-2]), signal.SIGKILL)

    data = prepare_study(study, tmp_path / "together", jobs=2, cluster="local", report=report)
    assert contents(data.folder) == alone
    assert sorted(path.name for path in (tmp_path / "together").iterdir()) == [
        ".data.digests.json",
        ".data.lock",
        "data",
        "jobs",
    ]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_a_job_asks_of_slurm_is_checked():
    asked = ClusterConfig(processes=4, memory=1.5, minutes=30, slurm={"qos": "high"}).parameters()
    assert (asked["ntasks_per_node"], asked["mem"], asked["time"]) == (4, "1536M", 30)
    assert asked["additional_parameters"] == {"no-requeue": True, "qos": "high"}
    for name in ("processes", "cpus_per_task", "minutes"):
        with pytest.raises(ValueError, match=f"`{name}` must be at least 1, but is 0"):
            ClusterConfig(**{name: 0})
    with pytest.raises(ValueError, match="`memory` must be above 0"):
        ClusterConfig(memory=-1)


def test_a_missing_submitit_is_one_line_that_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(
        DataError,
        match=r"^--cluster needs the extra `cluster`: pip install '\./packages/mnmt-data\[cluster\]'\.$",
    ):
        Cluster("local", jobs=1, logs=tmp_path, name="test")


def test_a_machine_without_slurm_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match="--cluster slurm needs Slurm"):
        Cluster("slurm", jobs=1, logs=tmp_path, name="test")
