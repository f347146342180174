"""Peak memory of training steps.

Claim: ours needs less memory, above all with a large vocabulary. Peer: Hugging Face transformers' T5. Cited
in docs/model/measured.md.

The model is the smallest of `training_speed`, with a small vocabulary and with that of Fernandes et al. 2023;
both train on the same batches, each in a process of its own. Printed is the largest resident set after a few
steps with AdamW and dropout, and the one before the model was built, which is that of the libraries alone.

    pip install transformers
    python -m benchmarks.model.training_memory --out benchmarks/results/model/training_memory.json
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from benchmarks.measurement import (
    Counts,
    Figures,
    Out,
    in_new_process,
    is_installed,
    peak_memory_mb,
    print_table,
    provenance,
    run,
    write_report,
)
from benchmarks.model.trainers import OurTrainer, TheirTrainer, Trainer
from benchmarks.model.training_data import open_data
from benchmarks.model.training_speed import ADAMW, OURS, SAME, SIZES

STEPS = 3
SMALLEST = 8_000
"""The text has at most so many different tokens, whatever the vocabulary."""


def main(
    *,
    data: Path | None = None,
    size: str = "d256",
    vocabularies: Counts = (8_000, 128_000),
    batch_tokens: int = 4096,
    threads: int = 2,
    way: str | None = None,
    out: Out = None,
) -> None:
    """Print a table.

    Args:
        data: Folder of prepared data; random tokens by default.
        size: Size of the model, as `training_speed` names it.
        vocabularies: Tokens of the vocabularies.
        batch_tokens: Source and target tokens of a batch, on average.
        threads: Threads of torch.
        way: Measure this trainer alone, in this process; the benchmark starts itself with it.
        out: JSON file for the figures.
    """
    torch.set_num_threads(threads)
    if way is not None:
        print(json.dumps(measure(way, data, size, vocabularies[0], batch_tokens)))
        return
    options = ["--size", size, "--batch-tokens", batch_tokens, "--threads", threads]
    options += ["--data", data] if data else []
    rows = [
        {"vocabulary": count, "way": each}
        | in_new_process(__spec__.name, *options, "--vocabularies", count, "--way", each)
        for count in vocabularies
        for each in (OURS, SAME)
        if each == OURS or is_installed("transformers")
    ]
    print_table(rows)
    what = f"peak memory of training steps of {batch_tokens} tokens"
    write_report(out, what, {"rows": rows}, provenance("mnmt-model", "torch", "transformers"))


def measure(way: str, data: Path | None, size: str, vocab_size: int, batch_tokens: int) -> Figures:
    """Return the peak memory of a few steps of one trainer."""
    pairs = open_data(data, vocab_size=min(vocab_size, SMALLEST), batch_tokens=batch_tokens)
    batches = [pairs.stream.batch(step) for step in range(STEPS)]
    before = peak_memory_mb()
    model = SIZES[size].model
    trainer: Trainer = (
        OurTrainer(model, vocab_size, ADAMW, pairs)
        if way == OURS
        else TheirTrainer(model, vocab_size, ADAMW, batches.__getitem__)
    )
    for step in range(STEPS):
        trainer.step(step)
    peak = peak_memory_mb()
    return {"libraries_mb": before, "peak_mb": peak, "training_mb": peak - before}


if __name__ == "__main__":
    run(main, smoke={"threads": 1, "size": "d64", "vocabularies": (1000,), "batch_tokens": 512})
