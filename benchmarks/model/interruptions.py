"""Runs that are interrupted at random moments, against the same runs never stopped.

Claim: an interrupted run that is started again ends with the same bits: weights, optimiser, losses and names
of checkpoints. Cited in docs/model/resuming.md.

Runs of a tiny study are trained over and over: a trunk, a branch, and three of each in a sweep. Processes
that train them are ended in one of these ways, and are started again until all runs have finished:

- `kill`: SIGKILL at a random moment;
- `kill while saving`: SIGKILL at a random line of the code that writes checkpoints and records;
- `SIGTERM`, `SIGINT`, `SIGUSR1`: the signal at a random moment;
- `preemption`: SIGTERM at a random moment, and SIGKILL a random third of a second later at most;
- `worker kill`, `worker SIGTERM`, `worker SIGUSR1`: the same to a process of the sweep, which goes on.

    python -m benchmarks.model.interruptions --out benchmarks/results/model/interruptions.json
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from benchmarks.model.stopped_sweep import interrupt_sweeps
from benchmarks.model.stopping import Runs, check_status, differences, end, row
from benchmarks.studies import prepare, write_text
from mnmt_data.study import read_study
from mnmt_model import run_configs, train

STUDY = """
name = "interruptions"
[data]
tasks = ["xx-aa", "xx-bb"]
[data.vocab]
kind = "word"
size = 64
[data.synthetic]
concepts = 30
words_per_sentence = 2
syllable_inventory = 16
train_sentences = 2000
dev_sentences = 20
test_sentences = 20
[model]
d_model = 16
num_heads = 2
d_ff = 32
[train]
horizons = [30, 60]
warmup_steps = 5
cooldown_steps = 30
batch_tokens = 300
dropout = 0.1
log_every = 2
eval_every = 4
checkpoint_every = 3
[sweep.sizes.d16]
[sweep.fit]
sizes = ["d16"]
mixtures = [{ xx-aa = 0.3, xx-bb = 0.7 }, { xx-aa = 1.0 }, { xx-aa = 0.6, xx-bb = 0.4 }]
"""
SAVING = ("mnmt_model/checkpoints/", "mnmt_model/runs/run_record", "mnmt_data/store/")
"""Parts of the paths of code that writes checkpoints and records."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["mnmt_model.training.run"])


SUBJECTS = ("trunk", "branch", "sweep")


def train_alone(runs: Runs, folder: Path) -> None:
    """Train one run."""
    train(runs[0], folder / runs[0].name)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Runs that are interrupted."""

    name: str
    runs: Runs
    ways: Sequence[str] = ("kill", "kill while saving", "SIGTERM", "SIGINT", "SIGUSR1", "preemption")
    """Ways in which their process is ended."""


@dataclass(frozen=True, kw_only=True)
class Whole:
    """The same runs never stopped."""

    folder: Path
    """The folder of the runs' folders."""
    seconds: float
    lines: int
    """Lines of the code that saves, which the process passed."""


def main(
    *,
    interruptions: int = 40,
    subjects: Names = SUBJECTS,
    seed: int = 1,
    out: Out = None,
) -> None:
    """Interrupt runs, and compare.

    Args:
        interruptions: Processes to end of the trunk, of the branch, and of the sweep.
        subjects: What to interrupt.
        seed: Seed of the moments.
        out: JSON file for the figures; those of other subjects in it stay.
    """
    rng = random.Random(seed)
    rows = [each for each in earlier_rows(out) if each["subject"] not in subjects]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        study = write_text(folder / "study.toml", STUDY)
        runs = run_configs(read_study(study), prepare(study, folder))
        for subject in (Subject(name="trunk", runs=runs[:1]), Subject(name="branch", runs=runs[1:2])):
            if subject.name not in subjects:
                continue
            whole = measure(subject, folder / "whole" / subject.name, folder / "whole" / "trunk")
            rows.append(interrupt_often(subject, whole, folder / "runs", interruptions, rng))
        if "sweep" in subjects:
            rows.append(interrupt_sweeps(study, runs, folder, interruptions, rng))
    print_table(rows)
    write_report(out, "runs interrupted at random moments", {"rows": rows}, provenance("mnmt-model", "torch"))
    if any(row["different"] for row in rows):
        raise SystemExit("A run that was interrupted differs from one never stopped.")


def earlier_rows(out: Path | None) -> list[Figures]:
    """Return the rows of a file of figures; none if there is no such file."""
    rows: list[Figures] = json.loads(out.read_text(encoding="utf-8"))["rows"] if out and out.exists() else []
    return rows


def measure(subject: Subject, folder: Path, trunks: Path) -> Whole:
    """Train runs without a stop, and again to count the lines that are passed while they save."""
    for _ in range(2):  # the first time, products are measured
        since = time.perf_counter()
        begin(subject, folder, trunks)
        if start(subject, folder) != 0:
            raise SystemExit(f"{subject.name}: was not trained.")
        seconds = time.perf_counter() - since
    again = folder.with_name(f"{folder.name} again")
    begin(subject, again, trunks)
    receiver, sender = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=train_and_count, args=(subject, again, sender))
    process.start()
    lines = receiver.recv()
    process.join()
    return Whole(folder=folder, seconds=seconds, lines=lines)


def begin(subject: Subject, folder: Path, trunks: Path) -> None:
    """Make a folder in which runs can begin: empty, but for the trunks of branches."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for branch in filter(None, (config.branch for config in subject.runs)):
        shutil.copytree(trunks / branch.run, folder / branch.run)


def start(
    subject: Subject, folder: Path, kill_at: int = 0, end: Callable[[Any], None] = lambda process: None
) -> int:
    """Train runs in a process, which `end` may end, and return its exit status."""
    process = FORKS.Process(target=work, args=(subject, folder, kill_at))
    process.start()
    end(process)
    process.join()
    return process.exitcode or 0


def work(subject: Subject, folder: Path, kill_at: int) -> None:
    """Train runs as the whole work of a process, which may be killed at a line of the code that saves."""
    import torch

    torch.set_num_threads(1)
    if kill_at:
        count_lines(kill_at)
    try:
        train_alone(subject.runs, folder)
    except KeyboardInterrupt as error:
        os._exit(getattr(error, "exit_status", 130))


def train_and_count(subject: Subject, folder: Path, sender: Any) -> None:
    """Train runs and send the number of lines that are passed while they save."""
    import torch

    torch.set_num_threads(1)
    counted = count_lines(0)
    train_alone(subject.runs, folder)
    sys.settrace(None)
    sender.send(counted[0])


def count_lines(kill_at: int) -> list[int]:
    """Count the lines that this thread passes in the code that saves; end the process at one of them."""
    counted = [0]

    def on_line(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            counted[0] += 1
            if counted[0] == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return on_line

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        return on_line if any(part in frame.f_code.co_filename for part in SAVING) else None

    sys.settrace(on_call)
    return counted


def interrupt_often(
    subject: Subject, whole: Whole, folder: Path, interruptions: int, rng: random.Random
) -> Figures:
    """Interrupt runs, start them again until they have finished, compare them, and begin anew."""
    ended: Counter[str] = Counter()
    trials = different = 0
    while sum(ended.values()) < interruptions:
        begin(subject, folder, whole.folder.with_name("trunk"))
        ended += interrupt_once(subject, whole, folder, rng)
        trials += 1
        different += differences(subject.name, subject.runs, folder, whole.folder)
        print(f"{subject.name}: {sum(ended.values())} interruptions, {trials} trials", file=sys.stderr)
    return row(subject.name, trials, len(subject.runs), ended, different)


def interrupt_once(subject: Subject, whole: Whole, folder: Path, rng: random.Random) -> Counter[str]:
    """Train runs to their ends through interruptions; return how often each kind ended a process."""
    ended: Counter[str] = Counter()
    for way in [*rng.choices(subject.ways, k=rng.randint(1, 4)), "none"]:
        kill_at = rng.randrange(1, whole.lines) if way == "kill while saving" else 0
        status = start(subject, folder, kill_at, partial(end, way=way, seconds=whole.seconds, rng=rng))
        if status == 0:
            return ended
        check_status(folder, status, way)
        ended[way] += 1
    raise SystemExit(f"{folder}: did not finish.")


if __name__ == "__main__":
    run(main, smoke={"interruptions": 1})
