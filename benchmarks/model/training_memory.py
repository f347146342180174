"""Peak memory of training steps, ours and Hugging Face transformers' T5, each way in a process of its own.

The model is the smallest of `training_speed.py`, with a small vocabulary and with that of Fernandes et al.
2023; both train on the same batches. Printed is the largest resident set after a few steps with AdamW and
dropout, and what it was before the model was built, which is the libraries alone.

    pip install mnmt-model transformers
    python -m benchmarks.model.training_memory --out benchmarks/results/model/training_memory.json
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import cyclopts
import torch

from benchmarks.model.training_data import open_data
from benchmarks.model.training_speed import ADAMW, OURS, SAME, SIZES, Ours, Theirs, Way, described

VOCABULARIES = (8_000, 128_000)
STEPS = 3

app = cyclopts.App(help=__doc__)


@app.default
def main(
    data: Path | None = None, batch_tokens: int = 4096, threads: int = 2, out: Path | None = None
) -> None:
    """Print a table.

    Args:
        data: Folder of prepared data; drawn ones by default.
        batch_tokens: Source and target tokens of a batch, on average.
        threads: Of torch.
        out: File for the figures.
    """
    rows = []
    print("| vocabulary | way | libraries, MB | peak, MB | peak over libraries, MB |\n|--|--|--|--|--|")
    for vocab_size in VOCABULARIES:
        for way in (OURS, SAME):
            options = ["--data", str(data)] if data else []
            command = ["measure", way, str(vocab_size), str(batch_tokens), str(threads), *options]
            row = in_process(command)
            rows.append({"vocabulary": vocab_size, "way": way, **row})
            print(f"| {vocab_size} | {way} | {' | '.join(map(str, row.values()))} |", flush=True)
    if out:
        report = {"what": f"peak memory of training steps of {batch_tokens} tokens", "rows": rows}
        out.write_text(json.dumps(report | described(), indent=1) + "\n", encoding="utf-8")


def in_process(command: list[str]) -> dict[str, Any]:
    """What a new process of this program prints."""
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.model.training_memory", *command],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@app.command
def measure(way: str, vocab_size: int, batch_tokens: int, threads: int, *, data: Path | None = None) -> None:
    """Print the figures of one way, as JSON."""
    torch.set_num_threads(threads)
    pairs = open_data(data, vocab_size=min(VOCABULARIES), batch_tokens=batch_tokens)
    size = replace(SIZES["d256"], vocab_size=vocab_size)
    batches = [pairs.stream.batch(step) for step in range(STEPS)]
    before = peak_mb()
    trained: Way = Ours(size, ADAMW, pairs) if way == OURS else Theirs(size, ADAMW, batches.__getitem__)
    for step in range(STEPS):
        trained.step(step)
    print(json.dumps({"libraries_mb": before, "peak_mb": peak_mb(), "training_mb": peak_mb() - before}))


def peak_mb() -> int:
    """The largest resident set of this process so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    app()
