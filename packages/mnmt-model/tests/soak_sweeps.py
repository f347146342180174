"""Trains 300 simulated runs through two sweeps, and through Slurm, while something is killed all the time.

    python packages/mnmt-model/tests/soak_sweeps.py --out soak [--slurm] [--smoke]

Afterwards each run must have finished once, with the number that it has without a stop, and no process
may be left.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from fake_training import STARTS, fake_runs, fake_train, final_value
from slurm_cluster import slurm_cluster

from mnmt_data.jobs import ClusterConfig, SlurmWorkers
from mnmt_data.jobs.claim import LOCK
from mnmt_data.store import is_locked
from mnmt_model.runs import is_alive, read_heartbeat, read_run
from mnmt_model.sweep.run_queue import RunQueue
from mnmt_model.sweep.workers import ClusterWork, local_workers

STEPS = 25
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1)
SWEEP_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
JOBS = 3
RUNS_A_STOP = 3
"""Runs that are started from one stop to the next: one that only ever starts proves nothing."""


def main() -> None:
    """Run the soak, print what came of it as JSON, and exit with 1 if anything is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--slurm", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--sweep", action="store_true", help="be one of the sweeps")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    count = 12 if options.smoke else 300
    if options.sweep:
        sys.exit(sweep(options.out, count, slurm=options.slurm))
    shutil.rmtree(options.out, ignore_errors=True)
    with ExitStack() as stack:
        if options.slurm:
            here = str(Path(__file__).parent)
            environ = stack.enter_context(slurm_cluster(options.out / "cluster"))
            os.environ.update(
                {**environ, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
            )
        result = soak(options.out, count, sys.argv[1:], Random(options.seed), slurm=options.slurm)
    print(json.dumps(result, indent=2))
    sys.exit(bool(result["wrong"]))


def sweep(out: Path, count: int, *, slurm: bool) -> int:
    """Be a sweep over the simulated runs."""
    runs, folder = fake_runs(count, steps=STEPS), out / "runs"
    if slurm:
        SlurmWorkers.poll_seconds = 1.0
        work = ClusterWork(tuple(runs), folder.resolve(), fake_train)
        workers = SlurmWorkers(work, folder=out / "jobs", name="soak", config=ClusterConfig(), detached=True)
        return RunQueue(runs, folder, workers, jobs=JOBS).train()
    return RunQueue(runs, folder, local_workers(runs, folder, jobs=JOBS, train=fake_train), jobs=JOBS).train()


def soak(
    out: Path, count: int, arguments: Sequence[str], random: Random, *, slurm: bool
) -> dict[str, object]:
    """Train the runs while processes are killed; return what was done, and what is wrong."""
    started, stops, pids = time.monotonic(), Counter[str](), set[int]()
    command = [sys.executable, __file__, "--sweep", *arguments]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command)

    sweeps = [start() for _ in range(1 if slurm else 2)]
    try:
        while any(process.poll() is None for process in sweeps):
            pids |= set(beats(out, count))
            if sum(stops.values()) < len(pids) // RUNS_A_STOP:
                stops[stop_something(out, count, sweeps, start, random, slurm=slurm)] += 1
            time.sleep(random.uniform(0.05, 0.4))
    finally:
        for process in sweeps:
            process.kill()
    time.sleep(3)
    seconds = round(time.monotonic() - started)
    return {"runs": count, "seconds": seconds, "stops": stops, **check(out, count, pids)}


def stop_something(
    out: Path,
    count: int,
    sweeps: list[subprocess.Popen[bytes]],
    start: Callable[[], subprocess.Popen[bytes]],
    random: Random,
    *,
    slurm: bool,
) -> str:
    """Stop a worker, a job or a sweep; a sweep is started again. Return what was done."""
    if random.random() < 0.06:
        number, signum = random.randrange(len(sweeps)), random.choice(SWEEP_SIGNALS)
        if sweeps[number].poll() is None:
            sweeps[number].send_signal(signum)
            sweeps[number].wait()
        sweeps[number] = start()
        return f"sweep {signum.name}"
    if slurm and random.random() < 0.3:
        return stop_job(random)
    if alive := beats(out, count):
        signum = random.choice(SIGNALS)
        try:
            os.kill(random.choice(alive), signum)
        except ProcessLookupError:
            return "nothing"
        return f"worker {signum.name}"
    return "nothing"


def stop_job(random: Random) -> str:
    """Stop one of Slurm's jobs."""
    command = ["squeue", "--me", "--array", "--noheader", "--states=RUNNING", "--format=%i"]
    jobs = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    if not jobs:
        return "nothing"
    ways = {
        "job cancelled": ["scancel"],
        "job's time up": ["scancel", "--signal=USR1"],
        "job killed": ["scancel", "--signal=KILL", "--full"],
        "job requeued": ["scontrol", "requeue"],
    }
    way = random.choice(list(ways))
    subprocess.run([*ways[way], random.choice(jobs)], check=False, capture_output=True)
    return way


def beats(out: Path, count: int) -> list[int]:
    """Return the processes that train."""
    folders = [out / "runs" / run.name for run in fake_runs(count, steps=STEPS)]
    return [
        beat.pid for folder in folders if is_alive(folder) and (beat := read_heartbeat(folder)) is not None
    ]


def check(out: Path, count: int, pids: set[int]) -> dict[str, object]:
    """Return how the runs ended, and what is wrong with them."""
    wrong: list[str] = []
    starts = 0
    for run in fake_runs(count, steps=STEPS):
        folder = out / "runs" / run.name
        starts += len((folder / STARTS).read_text(encoding="utf-8").splitlines())
        ends = [
            json.loads(line) for line in (folder / "finished.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        if [end["value"] for end in ends] != [final_value(run)]:
            wrong.append(f"{run.name} ended with {ends}")
        if (status := read_run(folder).status) != "finished":
            wrong.append(f"{run.name} is {status}")
        if is_locked(folder / LOCK):
            wrong.append(f"{run.name} is still locked")
    wrong += [f"process {pid} is left" for pid in pids if Path(f"/proc/{pid}/cmdline").exists()]
    return {"starts": starts, "processes": len(pids), "wrong": wrong}


if __name__ == "__main__":
    main()
