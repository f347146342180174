"""Runs that are interrupted at random moments, against the same runs never stopped.

Claim: an interrupted run that is started again ends with the same bits: weights, optimiser, losses and names
of checkpoints. Cited in docs/model/resuming.md.

A trunk and a branch of a tiny study are trained over and over. Processes that train them are ended in one of
these ways, and the run is started again until it has finished:

- `kill`: SIGKILL at a random moment;
- `kill while saving`: SIGKILL at a random line of the code that writes checkpoints and records;
- `SIGTERM`, `SIGINT`, `SIGUSR1`: the signal at a random moment;
- `preemption`: SIGTERM at a random moment, and SIGKILL a random third of a second later at most.

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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from benchmarks.measurement import Out, print_table, provenance, run, write_report
from benchmarks.studies import prepare, write_text
from mnmt_data.store import read_json_lines
from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, read_run, run_configs, train
from mnmt_model.checkpoints import find_checkpoints

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
mixtures = [{ xx-aa = 0.3, xx-bb = 0.7 }]
"""
TIMES = ("tokens_per_second", "mfu", "data_wait")
SAVING = ("mnmt_model/checkpoints/", "mnmt_model/runs/run_record", "mnmt_data/store/")
"""Parts of the paths of code that writes checkpoints and records."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["mnmt_model.training.run"])


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A run that is interrupted, and the same run never stopped."""

    run: RunConfig
    whole: Path
    seconds: float
    """Seconds of the run that was never stopped."""
    lines: int
    """Lines of the code that saves, which that run passed."""


def main(*, interruptions: int = 60, seed: int = 1, out: Out = None) -> None:
    """Interrupt a trunk and a branch, and compare.

    Args:
        interruptions: Processes to end, of the trunk and of the branch each.
        seed: Seed of the moments.
        out: JSON file for the figures.
    """
    rng = random.Random(seed)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        study = write_text(folder / "study.toml", STUDY)
        runs = run_configs(read_study(study), prepare(study, folder))
        subjects = [measure(run, folder / "whole") for run in runs]
        rows = [interrupt_often(subject, folder / "runs", interruptions, rng) for subject in subjects]
    print_table(rows)
    write_report(out, "runs interrupted at random moments", {"rows": rows}, provenance("mnmt-model", "torch"))
    if any(row["different"] for row in rows):
        raise SystemExit("A run that was interrupted differs from one never stopped.")


def measure(run: RunConfig, folder: Path) -> Subject:
    """Train a run without a stop, and again to count the lines that it passes while it saves."""
    whole = folder / run.name
    for _ in range(2):  # the first time, products are measured
        shutil.rmtree(whole, ignore_errors=True)
        since = time.perf_counter()
        if start(run, whole) != 0:
            raise SystemExit(f"{whole}: was not trained.")
        seconds = time.perf_counter() - since
    again = folder / "counted" / run.name
    if run.branch:
        again = folder / "counted" / "branch" / run.name
        again.parent.mkdir(parents=True)
        (again.parent / run.branch.run).symlink_to(folder / run.branch.run)
    receiver, sender = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=train_and_count, args=(run, again, sender))
    process.start()
    lines = receiver.recv()
    process.join()
    return Subject(run=run, whole=whole, seconds=seconds, lines=lines)


def start(
    run: RunConfig, folder: Path, kill_at: int = 0, end: Callable[[Any], None] = lambda process: None
) -> int:
    """Train a run in a process, which `end` may end, and return its exit status."""
    process = FORKS.Process(target=train_alone, args=(run, folder, kill_at))
    process.start()
    end(process)
    process.join()
    return process.exitcode or 0


def train_alone(run: RunConfig, folder: Path, kill_at: int) -> None:
    """Train a run as the whole work of a process, which may be killed at a line of the code that saves."""
    import torch

    torch.set_num_threads(1)
    if kill_at:
        count_lines(kill_at)
    try:
        train(run, folder)
    except KeyboardInterrupt as error:
        os._exit(getattr(error, "exit_status", 130))


def train_and_count(run: RunConfig, folder: Path, sender: Any) -> None:
    """Train a run and send the number of lines that it passes while it saves."""
    import torch

    torch.set_num_threads(1)
    counted = count_lines(0)
    train(run, folder)
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


def interrupt_often(subject: Subject, folder: Path, interruptions: int, rng: random.Random) -> dict[str, Any]:
    """Interrupt a run, start it again until it has finished, compare it, and begin anew."""
    ended: Counter[str] = Counter()
    trials = different = 0
    while sum(ended.values()) < interruptions:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if branch := subject.run.branch:
            shutil.copytree(subject.whole.parent / branch.run, folder / branch.run)
        ended += interrupt_once(subject, folder / subject.run.name, rng)
        trials += 1
        difference = compare(folder / subject.run.name, subject.whole)
        different += difference is not None
        if difference:
            print(f"{subject.run.name}, trial {trials}: {difference}", flush=True)
        print(f"{subject.run.name}: {sum(ended.values())} interruptions of {trials} runs", file=sys.stderr)
    name = "branch" if subject.run.branch else "trunk"
    return {
        "run": name,
        "runs": trials,
        "interruptions": sum(ended.values()),
        **ended,
        "different": different,
    }


def interrupt_once(subject: Subject, folder: Path, rng: random.Random) -> Counter[str]:
    """Train a run to its end through interruptions; return how often each kind ended a process."""
    ended: Counter[str] = Counter()
    ways = ["kill", "kill while saving", "SIGTERM", "SIGINT", "SIGUSR1", "preemption"]
    for way in [*rng.choices(ways, k=rng.randint(1, 4)), "none"]:
        kill_at = rng.randrange(1, subject.lines) if way == "kill while saving" else 0
        status = start(subject.run, folder, kill_at, partial(end, way=way, subject=subject, rng=rng))
        if status == 0:
            return ended
        if status not in (-9, -15, -10, -2, 130, 138, 143):
            raise SystemExit(f"{folder}: ended with {status}.")
        ended[way] += 1
    raise SystemExit(f"{folder}: did not finish.")


def end(process: Any, way: str, subject: Subject, rng: random.Random) -> None:
    """Send a process what ends it, at a random moment."""
    if way in ("none", "kill while saving"):
        return
    process.join(rng.uniform(0, subject.seconds))
    signum = (
        signal.SIGKILL if way == "kill" else signal.Signals[way] if way.startswith("SIG") else signal.SIGTERM
    )
    with suppress(ProcessLookupError):
        os.kill(process.pid, signum)
        if way == "preemption":
            process.join(rng.uniform(0, 1 / 3))
            process.kill()


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


if __name__ == "__main__":
    run(main, smoke={"interruptions": 1})
