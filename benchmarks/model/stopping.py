"""Ending processes that train, and comparing the runs that they leave."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.measurement import Figures
from mnmt_data.store import read_json_lines
from mnmt_model import RunConfig, RunError, read_run
from mnmt_model.checkpoints import find_checkpoints

Runs = Sequence[RunConfig]

TIMES = ("tokens_per_second", "mfu", "data_wait")


def end(process: Any, way: str, seconds: float, rng: random.Random) -> None:
    """Send a process what ends it, at a random moment of so many seconds."""
    if way in ("none", "kill while saving"):
        return
    join(process, rng.uniform(0, seconds))
    signum = (
        signal.SIGKILL if way == "kill" else signal.Signals[way] if way.startswith("SIG") else signal.SIGTERM
    )
    with suppress(ProcessLookupError):
        os.kill(process.pid, signum)
        if way == "preemption":
            join(process, rng.uniform(0, 1 / 3))
            process.kill()


def join(process: Any, seconds: float) -> None:
    """Wait for the end of a process, so many seconds at most."""
    if isinstance(process, subprocess.Popen):
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    else:
        process.join(seconds)


def check_status(folder: Path, status: int, way: str) -> None:
    """Check that an exit status is one of a signal; Python has 1 for SIGINT before anything else."""
    if status not in (-9, -15, -10, -2, 130, 138, 143) and (status, way) != (1, "SIGINT"):
        raise SystemExit(f"{folder}: ended with {status}.")


def row(name: str, trials: int, runs: int, ended: Counter[str], different: int) -> Figures:
    """Return the figures of a subject."""
    interruptions = sum(ended.values())
    return {
        "subject": name,
        "runs": trials * runs,
        "interruptions": interruptions,
        **ended,
        "different": different,
    }


def differences(name: str, runs: Runs, folder: Path, whole: Path) -> int:
    """Return how many runs differ from those never stopped, and print in what."""
    count = 0
    for run in runs:
        if difference := compare(folder / run.name, whole / run.name):
            print(f"{name}, {run.name}: {difference}", flush=True)
            count += 1
    return count


def compare(folder: Path, whole: Path) -> str | None:
    """Return what of two runs differs; None if nothing does."""
    if read_run(folder).status != "finished":
        return f"is {read_run(folder).status}"
    ours, theirs = (find_checkpoints(each / "checkpoints") for each in (folder, whole))
    if [path.name for path in ours] != [path.name for path in theirs]:
        return "other checkpoints"
    for one, other in zip(ours, theirs, strict=True):
        for kind in ("model", "optimizer"):
            name = f"{kind}.safetensors"
            if (one / name).read_bytes() != (other / name).read_bytes():
                return f"another {kind} in {one.name}"
    if (folder / "evals.jsonl").read_bytes() != (whole / "evals.jsonl").read_bytes():
        return "other evaluations"
    if logged(folder) != logged(whole):
        return "another training loss"
    left = [path.name for path in folder.rglob("*") if path.name.endswith((".partial", ".tmp"))]
    return f"left {left[0]}" if left else None


def logged(folder: Path) -> list[str]:
    """Return the lines of metrics.jsonl without what depends on the time."""
    lines = read_json_lines(folder / "metrics.jsonl", error=RunError)
    return [json.dumps({key: value for key, value in line.items() if key not in TIMES}) for line in lines]
