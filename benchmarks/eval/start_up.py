r"""Time from a command to its answer, on files so small that most of it is start-up.

Claim: help pages appear in about the time of `sacrebleu --help`, and `compare` ends before sacreBLEU's own
paired test. Cited in docs/eval/comparing.md.

All commands run one after the other in each turn, so that other load meets all alike; the first turn, which
compiles the modules, is not counted. A ratio is the median over turns of a command's seconds by
those of `sacrebleu --help` in the same turn: elapsed seconds, and seconds of the processor, which other load
changes less. The share of imports is what `python -X importtime` counts, which slows imports a little.

    python -m benchmarks.eval.start_up --out benchmarks/results/eval/start_up.json
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.measurement import Figures, Out, print_table, provenance, ratios, run, write_report

BASE = "sacrebleu --help"
FILES = "one.txt two.txt --reference reference.txt --task en-de"
COMMANDS = {
    BASE: "sacrebleu.sacrebleu",
    "mnmt-eval --help": "mnmt_eval",
    "mnmt-eval compare --help": "mnmt_eval",
    "mnmt-eval report --help": "mnmt_eval",
    f"mnmt-eval compare {FILES}": "mnmt_eval",
    f"mnmt-eval report {FILES} --out page": "mnmt_eval",
    "sacrebleu reference.txt -i one.txt two.txt --paired-ar -m bleu chrf": "sacrebleu.sacrebleu",
}
"""{command: its module}; with `python -m` a worktree without installed scripts is measured as well."""

TEXTS = {"one": "gut", "two": "schlecht", "reference": "gut"}

Seconds = tuple[float, float]
"""Elapsed seconds, and seconds of the processor."""


def main(*, turns: int = 15, out: Out = None) -> None:
    """Print a table.

    Args:
        turns: How often each command is run.
        out: JSON file for the figures.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, last in TEXTS.items():
            Path(folder, f"{name}.txt").write_text(
                f"Hallo du da drüben\nDas ist {last}\n" * 5, encoding="utf-8"
            )
        timed = [{command: seconds_of(command, folder) for command in COMMANDS} for _ in range(turns + 1)][1:]
        shares = {command: import_share(command, folder) for command in COMMANDS}
    rows = [row_of(command, [(turn[BASE], turn[command]) for turn in timed], shares) for command in COMMANDS]
    print_table([{key: cell(value) for key, value in row.items()} for row in rows])
    write_report(
        out,
        "start-up of commands",
        {"turns": turns, "base": BASE, "commands": rows},
        provenance("mnmt-eval", "mnmt-data", "sacrebleu", "cyclopts", "numpy"),
    )


def seconds_of(command: str, folder: str) -> Seconds:
    """Return what a command takes in a new process."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    answer(command, folder)
    elapsed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def import_share(command: str, folder: str) -> float:
    """Return the share of a command's elapsed time in which modules are imported."""
    start = time.perf_counter()
    lines = answer(command, folder, "-X", "importtime").stderr.splitlines()
    elapsed = time.perf_counter() - start
    alone = [line.removeprefix("import time:").split("|")[0].strip() for line in lines if "|" in line]
    return sum(int(each) for each in alone if each.isdecimal()) / 1e6 / elapsed


def answer(command: str, folder: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with options of Python."""
    arguments = [sys.executable, *options, "-m", COMMANDS[command], *command.split()[1:]]
    return subprocess.run(
        arguments, cwd=folder, env=environment(folder), check=True, capture_output=True, text=True
    )


def environment(folder: str) -> dict[str, str]:
    """Return the variables of a command: all modules compiled, in the folder, as installed packages are."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    entries = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    paths = os.pathsep.join(map(os.path.abspath, entries))
    return {**variables, "PYTHONPATH": paths, "PYTHONPYCACHEPREFIX": str(Path(folder, "compiled"))}


def row_of(command: str, pairs: Sequence[tuple[Seconds, Seconds]], shares: Figures) -> Figures:
    """Return a command's seconds, and how many times longer it took than the base in the same turn."""
    elapsed, processor = ([(base[i], ours[i]) for base, ours in pairs] for i in (0, 1))
    return {
        "command": command,
        "seconds": round(median(ours for _, ours in elapsed), 3),
        "processor_seconds": round(median(ours for _, ours in processor), 3),
        "times_base": ratios([ours for _, ours in elapsed], [base for base, _ in elapsed]),
        "times_base_processor": ratios([ours for _, ours in processor], [base for base, _ in processor]),
        "import_share": round(shares[command], 2),
    }


def cell(value: object) -> object:
    """Return a cell of the table: of ratios the median with the lowest and the highest."""
    if isinstance(value, dict):
        return f"{value['ratio']} [{value['lowest']}, {value['highest']}]"
    return value


if __name__ == "__main__":
    run(main, smoke={"turns": 1})
