"""Training speed on a GPU.

Claim: ours trains the presets of 20M to 1B parameters faster. Peer: Hugging Face transformers' T5, of equal
shape and pairs, both in bfloat16, compiled, with fused AdamW. No page cites it yet: it has not been measured.

Tokens are source and target tokens without padding; model FLOPs utilisation (MFU) is relative to the data
sheet's dense peak. The peer's batches are padded tables. Weights and text are drawn at random, with the
lengths of real text.

    python -m benchmarks.model.training_speed_gpu --out benchmarks/results/model/training_speed_gpu.json

`benchmarks/on_gpu.sh` runs this with everything else that needs a GPU.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import torch

from benchmarks.measurement import (
    Figures,
    Names,
    Out,
    is_installed,
    print_table,
    provenance,
    run,
    write_report,
)
from benchmarks.model.trainers import Case, OurTrainer, Step, TheirTrainer, Trainer, timed_step
from benchmarks.model.training_data import TrainingData, open_data
from benchmarks.model.training_speed import SIZES
from mnmt_model import ModelConfig, preset, training_flops
from mnmt_model.training import peak_flops

PRESETS = ("fernandes-l2-d512", "fernandes-l6-d768", "fernandes-l12-d1024", "fernandes-l12-d1536")
WARM_UP = 6


def main(
    *,
    presets: Names = PRESETS,
    batch_tokens: int = 65_536,
    vocab_size: int = 32_000,
    steps: int = 20,
    warm_up: int = WARM_UP,
    compiled: bool = True,
    out: Out = None,
) -> None:
    """Print a row for each preset and peer; the file has all rows so far, should the time be limited.

    Args:
        presets: Shapes: published presets, or sizes of `training_speed`.
        batch_tokens: Source and target tokens of a batch.
        vocab_size: Tokens of the vocabulary.
        steps: Timed steps.
        warm_up: Steps before them that do not count.
        compiled: Whether layers (ours) and the model (transformers) are compiled.
        out: JSON file for the figures.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        print("torch.cuda is not available: figures are those of a CPU")
    data = open_data(None, vocab_size=vocab_size, batch_tokens=batch_tokens)
    case = Case(precision="bfloat16", compile=compiled, device=device)
    rows = []
    for name in presets:
        model = SIZES[name].model if name in SIZES else preset(name).config
        peers: dict[str, Callable[[], Trainer]] = {
            "mnmt-model": partial(OurTrainer, model, vocab_size, case, data)
        }
        if is_installed("transformers"):
            peers["transformers"] = partial(TheirTrainer, model, vocab_size, case, data.stream.batch)
        for peer, make in peers.items():
            figures = measure(make, model, vocab_size, data, steps=steps, warm_up=warm_up)
            rows.append({"preset": name, "peer": peer, **figures})
            print(rows[-1], flush=True)
            description = provenance("mnmt-model", "torch", "transformers", gpu=device == "cuda")
            report = {"batch_tokens": batch_tokens, "compiled": compiled, "rows": rows}
            write_report(out, "training steps in bfloat16", report, description)
    print_table(rows)


def measure(
    make: Callable[[], Trainer],
    model: ModelConfig,
    vocab_size: int,
    data: TrainingData,
    *,
    steps: int,
    warm_up: int,
) -> Figures:
    """Return the rates of one peer, or its error if memory does not suffice."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    try:
        trainer = make()
        timed = [timed_step(trainer, number) for number in range(warm_up + steps)][warm_up:]
    except torch.OutOfMemoryError as error:
        return {"error": str(error).partition(".")[0]}
    tokens = [data.stream.tokens(warm_up + number) for number in range(steps)]
    flops = sum(training_flops(model, vocab_size, src_tokens=src, tgt_tokens=tgt) for src, tgt in tokens)
    return {**rates(timed), "mfu": utilisation(timed, flops), "peak_memory_gib": peak_gib()}


def rates(steps: Sequence[Step]) -> Figures:
    """Return tokens a second."""
    values = [step.tokens / step.seconds for step in steps]
    return {"tokens_per_second": round(median(values)), "range": [round(min(values)), round(max(values))]}


def utilisation(steps: Sequence[Step], flops: float) -> float | None:
    """Return the share of the GPU's peak FLOPs; None where the peak is unknown."""
    peak = peak_flops(torch.device("cuda"), torch.bfloat16) if torch.cuda.is_available() else None
    return round(flops / sum(step.seconds for step in steps) / peak, 3) if peak else None


def peak_gib() -> float | None:
    """Return the peak memory of torch on the GPU; None without one."""
    return round(torch.cuda.max_memory_allocated() / 2**30, 2) if torch.cuda.is_available() else None


if __name__ == "__main__":
    smoke = {
        "presets": ("d64",),
        "batch_tokens": 512,
        "vocab_size": 1000,
        "steps": 2,
        "warm_up": 1,
        "compiled": False,
    }
    run(main, smoke=smoke)
