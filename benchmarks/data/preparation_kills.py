"""Preparation by processes that are killed at random: the same bytes as by one process that is left alone.

Claim: whatever is killed, and however often, the prepared data are the same. Cited in docs/data/preparing.md.

One study is prepared by one process. Then it is prepared, again and again, by two workers
and the process that leads them, on one folder. All the while a process is killed (SIGKILL) after a
random time: mostly a worker, which the leader replaces, sometimes the leader, which is started again. At the
end all files are compared, prepared.json too.

    python -m benchmarks.data.preparation_kills --out benchmarks/results/data/preparation_kills.json
"""

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
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from mnmt_data import SyntheticConfig, write_synthetic_corpus

TASKS = ("xx-aa", "xx-bb")

PREPARE = """
from mnmt_data.cli import main
from mnmt_data.prepare import stages
stages.STARTING_PAIRS = 0  # Workers begin with the first job.
if __name__ == '__main__':
    main()
"""

STUDY = """
name = "killed"
[data]
tasks = ["{tasks}"]
corpus = "{corpus}"
dev_sentences = 500
test_sentences = 500
[data.vocab]
size = 2000
sentences = 20000
[data.leaks]
ngrams = false  # so that other stages are killed as often
"""


def main(
    *,
    pairs: int = 500_000,
    kills: int = 40,
    jobs: int = 2,
    shortest: float = 1.0,
    longest: float = 5.0,
    leaders: float = 0.2,
    seed: int = 1,
    out: Out = None,
) -> None:
    """Print how often what was killed, and whether all bytes were the same.

    Args:
        pairs: Sentence pairs of each of two tasks.
        kills: Processes to kill, at least; a preparation that has begun ends without more.
        jobs: Workers.
        shortest: Least seconds between two kills.
        longest: Most seconds between two kills.
        leaders: Share of the kills that are for the leader.
        seed: Seed of the times and of who is killed.
        out: JSON file for the figures.
    """
    draw = random.Random(seed)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        study = write_study(folder, pairs)
        alone_command = command(study, folder / "alone", "--jobs", "1")
        subprocess.run(alone_command, check=True, stdout=subprocess.DEVNULL)
        alone = digests(folder / "alone/data")
        rows: list[Figures] = []
        while sum(row["workers_killed"] + row["leaders_killed"] for row in rows) < kills:
            turn = Turn(command(study, folder / "shared", "--jobs", str(jobs)), folder)
            row = turn.prepare(draw, shortest=shortest, longest=longest, leaders=leaders)
            rows.append({**row, "same_bytes": digests(folder / "shared/data") == alone})
            print_table(rows[-1:])
            shutil.rmtree(folder / "shared")
    summary = {
        "files": len(alone),
        "preparations": len(rows),
        "workers_killed": sum(row["workers_killed"] for row in rows),
        "leaders_killed": sum(row["leaders_killed"] for row in rows),
        "all_same_bytes": all(row["same_bytes"] for row in rows),
    }
    print_table([summary])
    options = {"pairs": pairs, "jobs": jobs, "shortest": shortest, "longest": longest, "seed": seed}
    what = "mnmt-data prepare by two workers and their leader, killed at random, against one process"
    description = provenance("mnmt-data", "filelock")
    write_report(out, what, {**options, **summary, "each_preparation": rows}, description)
    if not summary["all_same_bytes"]:
        sys.exit("the data differ")


def write_study(folder: Path, pairs: int) -> Path:
    """Write training text of two tasks, without its description: so it is cleaned and split."""
    config = SyntheticConfig(
        languages=tuple(task.split("-")[1] for task in TASKS),
        concepts=5_000,
        target_syllables=3,
        source_syllables=3,
        train_sentences=pairs,
    )
    write_synthetic_corpus(config, folder / "corpus")
    for file in (folder / "corpus").iterdir():
        if not file.name.startswith("train."):
            file.unlink()
    study = folder / "study.toml"
    study.write_text(STUDY.format(tasks='", "'.join(TASKS), corpus=folder / "corpus"), encoding="utf-8")
    return study


def command(study: Path, results: Path, *options: str) -> list[str]:
    """Return the command that prepares a study."""
    return [sys.executable, "-c", PREPARE, "prepare", str(study), "--out", str(results), *options]


class Turn:
    """One preparation, whose processes are killed until it ends."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.command, self.folder = command, folder
        self._log.unlink(missing_ok=True)
        self.killed: Counter[str] = Counter()
        self.after: Counter[str] = Counter()
        """The stages that had been reported last when a process was killed."""

    def prepare(self, draw: random.Random, *, shortest: float, longest: float, leaders: float) -> Figures:
        """Prepare and kill; return how often what was killed."""
        start = time.perf_counter()
        leader = self._start()
        while not self._ends_within(leader, draw.uniform(shortest, longest)):
            if draw.random() < leaders:
                leader.kill()
                self._count("leaders")
                leader.wait()
                leader = self._start()
            elif workers := self._workers():
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(workers), signal.SIGKILL)
                    self._count("workers")
        if leader.returncode:
            sys.exit(f"the preparation failed:\n{self._log.read_text(encoding='utf-8')}")
        return {
            "workers_killed": self.killed["workers"],
            "leaders_killed": self.killed["leaders"],
            "killed_after": dict(self.after),
            "seconds": round(time.perf_counter() - start, 1),
        }

    @property
    def _log(self) -> Path:
        return self.folder / "log.txt"

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(self.command, stdout=log, stderr=log)

    def _ends_within(self, leader: subprocess.Popen[bytes], seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            leader.wait(timeout=seconds)
        return leader.poll() is not None

    def _workers(self) -> list[int]:
        """Return the processes that did jobs of the leader last."""
        pids = []
        for path in (self.folder / "shared/.data.queue").glob("*.attempts"):
            with suppress(FileNotFoundError):
                pids += [int(line.rpartition(".")[2]) for line in path.read_text().splitlines()[-1:]]
        return pids

    def _count(self, what: str) -> None:
        self.killed[what] += 1
        stages = ("clean:", "split:", "leaks:", "vocabulary:", "encode:")
        lines = [
            line for line in self._log.read_text(encoding="utf-8").splitlines() if line.startswith(stages)
        ]
        self.after[lines[-1].partition(":")[0] if lines else "start"] += 1


def digests(folder: Path) -> dict[str, str]:
    """Return {file: SHA-256} of all files in a folder and below."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in sorted(files)}


if __name__ == "__main__":
    smoke = {"pairs": 3000, "kills": 1, "shortest": 2.0, "longest": 5.0}
    run(main, smoke=smoke)
