"""Start-up of the command lines: CPU seconds of `--help`, `--version` and the commands that compute little.

Claim: `--help` and `--version` take at most 1.5 times the CPU of `sacrebleu --help`. Cited in
docs/packages/index.md.

Each command runs several times in a process of its own, in turn with the others; the least sum of its user
and system time counts. The study of `mnmt-model status` is a made-up one whose data are prepared here.

    python -m benchmarks.start_up --out benchmarks/results/start_up.json
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measurement import Out, print_table, provenance, run, write_report

PEER = "sacrebleu --help"
COMMANDS = (
    *(
        f"mnmt-{name} {flag}"
        for flag in ("--help", "--version")
        for name in ("data", "model", "eval", "laws")
    ),
    "mnmt-data schema",
    "mnmt-data inspect results/study/data",
    "mnmt-model status study.toml",
    "mnmt-model plan --preset fernandes-l12-d1024",
    "mnmt-eval compare one.aa two.aa --reference ref.aa --task xx-aa",
    "mnmt-laws laws",
    "mnmt-laws fit --example --refits 0",
)
STUDY = """
name = "study"
[data]
tasks = ["xx-aa"]
[data.vocab]
kind = "word"
size = 64
[data.synthetic]
languages = ["aa"]
concepts = 50
train_sentences = 500
dev_sentences = 20
test_sentences = 20
[model]
d_model = 16
num_heads = 2
head_dim = 8
d_ff = 32
encoder_layers = 1
decoder_layers = 1
[train]
steps = 80
batch_tokens = 256
[sweep.sizes]
d16 = {}
[sweep.fit]
sizes = ["d16"]
mixtures = [{ xx-aa = 1.0 }]
"""


def main(*, repeats: int = 5, out: Out = None) -> None:
    """Print the CPU seconds of each command, and how many times those of `sacrebleu --help` they are.

    Args:
        repeats: Times that each command runs.
        out: JSON file for the figures.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        turns = [
            {command: cpu_seconds(command, folder) for command in (PEER, *COMMANDS)} for _ in range(repeats)
        ]
    least = {command: min(turn[command] for turn in turns) for command in turns[0]}
    rows = [
        {
            "command": command,
            "cpu_seconds": round(seconds, 3),
            "times_sacrebleu": round(seconds / least[PEER], 2),
        }
        for command, seconds in least.items()
    ]
    print_table(rows)
    description = provenance(
        "mnmt-data", "mnmt-model", "mnmt-eval", "mnmt-laws", "cyclopts", "sacrebleu", "torch"
    )
    write_report(out, "start-up of the command lines", {"repeats": repeats, "results": rows}, description)


def write_inputs(folder: Path) -> None:
    """Write a study with prepared data, and three small translations."""
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    cpu_seconds("mnmt-data prepare study.toml --jobs 1", folder)
    for name in ("one", "two", "ref"):
        (folder / f"{name}.aa").write_text("da mi so\n" * 20, encoding="utf-8")


def cpu_seconds(command: str, folder: Path) -> float:
    """Run a console script of this environment; its user and system time.

    Raises:
        SystemExit: If it fails.
    """
    program, *arguments = command.split()
    script = Path(sys.executable).with_name(program)
    process = subprocess.Popen(
        [script, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    message = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command}: {message}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    run(main, smoke={"repeats": 1})
