"""A sweep that is interrupted at random moments, against the same sweep never stopped."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks.measurement import Figures
from benchmarks.model.stopping import Runs, check_status, differences, end, join, row
from mnmt_data.jobs import is_alive, read_heartbeat
from mnmt_data.study import read_study
from mnmt_model import run_configs
from mnmt_model.sweep.next_run import in_order
from mnmt_model.sweep.run_queue import RunQueue
from mnmt_model.sweep.workers import local_workers

WAYS = ("kill", "SIGTERM", "SIGINT", "SIGUSR1", "preemption")
"""Ways in which the sweep is ended."""
WORKER_WAYS = ("worker kill", "worker SIGTERM", "worker SIGUSR1")
"""Ways in which one of its processes is ended."""
EARLY = 0.4
"""Share of the time of a sweep in which it is ended, so that most of several ends come before its own."""
JOBS = 2
"""Workers of the sweep."""


def interrupt_sweeps(
    study: Path, runs: Runs, folder: Path, interruptions: int, rng: random.Random
) -> Figures:
    """Interrupt a sweep and its workers, start it again until it has finished, compare, and begin anew."""
    whole, results = folder / "sweep", folder / "swept"
    seconds = 0.0
    for _ in range(2):
        since = time.perf_counter()
        begin_sweep(whole, folder)
        if sweep(study, whole).wait() != 0:
            raise SystemExit("the sweep was not trained.")
        seconds = time.perf_counter() - since
    ended: Counter[str] = Counter()
    trials = different = 0
    while sum(ended.values()) < interruptions:
        begin_sweep(results, folder)
        ended += interrupt_sweep(study, runs, results, seconds, rng)
        trials += 1
        different += differences("sweep", runs, results / "runs", whole / "runs")
        print(f"sweep: {sum(ended.values())} interruptions, {trials} trials", file=sys.stderr)
    return row("sweep", trials, len(runs), ended, different)


def interrupt_sweep(
    study: Path, runs: Runs, results: Path, seconds: float, rng: random.Random
) -> Counter[str]:
    """Sweep a study to its end through interruptions; return how often each kind ended a process."""
    ended: Counter[str] = Counter()
    process = sweep(study, results)
    for way in rng.choices([*WAYS, *WORKER_WAYS], k=rng.randint(2, 4)):
        if way.startswith("worker "):
            join(process, rng.uniform(0, EARLY * seconds))
            ended[way] += end_worker(runs, results / "runs", way.removeprefix("worker "), rng)
        elif process.poll() is None:
            end(process, way=way, seconds=EARLY * seconds, rng=rng)
            if (status := process.wait()) != 0:
                check_status(results, status, way)
                ended[way] += 1
                process = sweep(study, results)
    if (status := process.wait()) != 0:
        raise SystemExit(f"{results}: ended with {status}.")
    return ended


def sweep(study: Path, results: Path) -> subprocess.Popen[bytes]:
    """Start a sweep."""
    code = f"from {__name__} import work; work({str(study)!r}, {str(results)!r})"
    with (results / "log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-c", code], stdout=log, stderr=log)


def work(study: str, results: str) -> None:
    """Be a sweep, as the whole work of a process."""
    folder = Path(results) / "runs"
    runs = in_order(run_configs(read_study(Path(study)), Path(results) / "data"))
    signum = RunQueue(runs, folder, local_workers(runs, folder, jobs=JOBS), jobs=JOBS).train()
    sys.exit(128 + signum if signum else 0)


def begin_sweep(results: Path, folder: Path) -> None:
    """Make a folder in which a sweep can begin."""
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir()
    (results / "data").symlink_to(folder / "data")


def end_worker(runs: Runs, folder: Path, way: str, rng: random.Random) -> int:
    """End one of the processes that train, if there are any; return how many were ended."""
    beats = [read_heartbeat(folder / run.name) for run in runs if is_alive(folder / run.name)]
    pids = [beat.pid for beat in beats if beat is not None]
    if not pids:
        return 0
    with suppress(ProcessLookupError):
        os.kill(rng.choice(pids), signal.SIGKILL if way == "kill" else signal.Signals[way])
        return 1
    return 0
