"""Workers of this machine are started, replaced, stopped, and end with the process that started them."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from pauses import complain, pause

from mnmt_data.errors import DataError
from mnmt_data.jobs import Crew, LocalWorkers, workers

PATIENCE_SECONDS = 120
LEAD = """
import signal, sys
from functools import partial
from pathlib import Path
from mnmt_data.jobs import LocalWorkers
sys.path.insert(0, sys.argv[2])
from pauses import pause
if __name__ == "__main__":
    workers = LocalWorkers(partial(pause, Path(sys.argv[1])), count=1)
    workers.start(1)
    sys.stdin.read()
"""


@pytest.fixture
def pausing(tmp_path):
    """Start workers that note their process and wait for a signal; they are killed at the end."""
    crews = []

    def start(count):
        crews.append(LocalWorkers(partial(pause, tmp_path), count=count))
        return crews[-1]

    yield start
    for crew in crews:
        crew.stop(signal.SIGKILL)


def pids(folder):
    return [int(path.name) for path in folder.glob("[0-9]*")]


def assert_soon(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def exists(pid):
    """Return whether a process runs; one that has ended and that nobody waits for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_each_worker_has_a_place_and_a_signal_that_stops_them_is_passed_on(pausing, tmp_path):
    local = pausing(2)
    local.start(2)
    assert_soon(lambda: len(pids(tmp_path)) == 2)
    assert local.alive() == 2
    assert {path.read_text() for path in tmp_path.glob("[0-9]*")} == {"0", "1"}
    local.stop(signal.SIGINT)
    assert local.exit_statuses == [128 + signal.SIGTERM] * 2


def test_workers_that_have_ended_are_replaced(pausing, tmp_path):
    local = pausing(1)
    crew = Crew(local, 1)
    for progress, signum in enumerate((signal.SIGKILL, signal.SIGTERM)):
        crew.alive()
        crew.tend(1, progress)
        (process,) = local._processes.values()
        assert_soon(lambda process=process: process.pid in pids(tmp_path))
        os.kill(process.pid, signum)
        process.join()
    assert crew.alive() == 0
    assert local.exit_statuses == [-signal.SIGKILL, 128 + signal.SIGTERM]


def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path):
    command = [sys.executable, "-c", LEAD, tmp_path, Path(__file__).parent]
    leader = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert_soon(lambda: pids(tmp_path))
    (pid,) = pids(tmp_path)
    leader.kill()
    leader.communicate()
    assert_soon(lambda: not exists(pid))


def test_a_crew_starts_workers_for_which_there_is_work_and_counts_those_without_use(counted_workers):
    counted_workers.stay = True
    crew = Crew(counted_workers, 3)
    for demand, alive in ((0, 0), (2, 2), (5, 3), (1, 3)):
        crew.alive()
        crew.tend(demand, "start")
        assert counted_workers.count == alive
    for progress in ("some", "more", "still more"):  # Workers that end while work is done are replaced.
        counted_workers.count = 0
        crew.alive()
        crew.tend(3, progress)
        assert counted_workers.count == 3
    counted_workers.count = 0
    crew.alive()
    crew.tend(3, "still more")
    counted_workers.count = 0
    crew.alive()
    with pytest.raises(DataError, match=r"^6 workers have ended without work; see the log$"):
        crew.tend(3, "still more")


def test_cores_are_those_that_slurm_gives_to_a_process(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "3")
    assert workers.num_cores() == 3
    monkeypatch.delenv("SLURM_CPUS_PER_TASK")
    assert workers.num_cores() == 1


def test_lines_that_workers_write_to_stderr_can_be_passed_on(capfd):
    lines = []
    crew = LocalWorkers(complain, count=2, on_line=lines.append)
    crew.start(2)
    assert_soon(lambda: crew.alive() == 0)
    assert sorted(lines) == ["first", "first", "zwölf", "zwölf"]
    assert capfd.readouterr().err == ""
