r"""Training speed on a CPU.

Claim: ours trains a T5 1.1 faster, from the same weights to the same losses. Peer: Hugging Face transformers'
T5, of equal shape, weights, pairs and optimiser.

The peer is timed on our own batches, of sentences of similar lengths, and for the smallest model on batches
of as many of the same pairs in random order, as a DataLoader makes them. The trainers take turns, a step
each, so that other work of the machine falls on all of them; with `--threads 1` the processor's time is
taken, which it hardly touches. A few batches come again and again: oneDNN compiles products for new numbers
of rows, which is a small part of a run, but a large one of its first steps. Printed are source and target
tokens a second, without padding: median and range over the steps; how many times longer the peer took than
ours on the same batch: median, lowest and highest; and the share of the product peak, which is the FLOPs of a
step over those of the fastest large product in the same time and precision. The losses
are a check: the first are the same without dropout, and after equally many steps they are close.

    pip install transformers
    mnmt-data prepare studies/moe-libreoffice.toml
    python -m benchmarks.model.training_speed --data results/moe-libreoffice/data \
        --out benchmarks/results/model/training_speed.json

Without `--data`, lengths are drawn from a log-normal that resembles that text's, and tokens at random.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor

from benchmarks.measurement import (
    Figures,
    Names,
    Out,
    is_installed,
    print_table,
    provenance,
    ratios,
    run,
    write_report,
)
from benchmarks.model.trainers import Case, OurTrainer, Step, TheirTrainer, Trainer, timed_step
from benchmarks.model.training_data import TrainingData, open_data
from mnmt_model import ModelConfig, build_model
from mnmt_model.planning import training_flops
from mnmt_model.training import PRECISIONS
from mnmt_model.training.mfu import fastest_rate

TOLERANCE = 1e-5
WARM_UP_COMPILED = 8
LEAST_STEPS = 3
OURS, SAME, RANDOM = "ours", "transformers, same batches", "transformers, random batches"

ADAMW, BFLOAT16, ADAFACTOR, NO_DROPOUT = CASES = (
    Case(),
    Case(precision="bfloat16"),
    Case(optimizer="adafactor"),
    Case(dropout=0.0),
)
MAIN_CASES = (ADAMW, NO_DROPOUT, BFLOAT16)


@dataclass(frozen=True, kw_only=True)
class Size:
    """A T5 1.1, and how long it is measured."""

    model: ModelConfig
    vocab_size: int
    cases: tuple[Case, ...]
    steps: int
    """Timed steps of each trainer in each case."""
    batches: int
    """Batches that come again, each once before the first timed step."""
    random_steps: int = 0
    """Timed steps of the peer on random batches, whose padding makes them long; in the first case alone."""


def t5(d_model: int, layers: int) -> ModelConfig:
    """Return the shape of Fernandes et al. 2023, Table A: heads of 64, d_ff of 4 d_model."""
    return ModelConfig(
        encoder_layers=layers,
        decoder_layers=layers,
        d_model=d_model,
        num_heads=d_model // 64,
        d_ff=4 * d_model,
    )


SIZES = {
    "d64": Size(model=t5(64, 1), vocab_size=1_000, cases=CASES, steps=24, batches=6, random_steps=1),
    "d256": Size(model=t5(256, 2), vocab_size=8_000, cases=CASES, steps=8, batches=4),
    "d512": Size(model=t5(512, 2), vocab_size=16_000, cases=MAIN_CASES, steps=4, batches=2),
    "d768": Size(model=t5(768, 3), vocab_size=32_000, cases=MAIN_CASES, steps=3, batches=1),
}


def main(
    *,
    data: Path | None = None,
    sizes: Names = ("d64", "d256", "d512", "d768"),
    batch_tokens: int = 4096,
    steps: int | None = None,
    compiled: bool = False,
    threads: int = 2,
    out: Out = None,
) -> None:
    """Print a table for each size.

    Args:
        data: Folder of prepared data; random tokens by default.
        sizes: Sizes of the models, among d64, d256, d512 and d768.
        batch_tokens: Source and target tokens of a batch, on average.
        steps: Timed steps of each trainer in each case; by default more for smaller models.
        compiled: Whether to measure also with compiled layers (ours) or a compiled model (transformers).
        threads: Threads of torch.
        out: JSON file for the figures.
    """
    torch.set_num_threads(threads)
    vocab_size = min(SIZES[name].vocab_size for name in sizes)
    pairs = open_data(data, vocab_size=vocab_size, batch_tokens=batch_tokens)
    figures: Figures = {"data": {"text": pairs.what, "padding": padding(pairs)}, "sizes": {}}
    print(f"{batch_tokens} tokens a batch, {threads} threads; {figures['data']}")
    for name in sizes:
        size = SIZES[name]
        cases = size.cases + ((Case(compile=True),) if compiled else ())
        num_params = count_parameters(size)
        print(f"\n### {name}: {num_params:,} parameters\n")
        rows = {str(case): compare(size, case, pairs, steps=steps) for case in cases}
        print_table([{"case": case, "way": way, **row} for case in rows for way, row in rows[case].items()])
        figures["sizes"][name] = {
            "model": {**asdict(size.model), "vocab_size": size.vocab_size, "parameters": num_params},
            "cases": rows,
        }
    what = f"training steps of {batch_tokens} tokens, {threads} threads"
    write_report(out, what, figures, provenance("mnmt-model", "torch", "transformers", "numpy"))


def padding(data: TrainingData) -> dict[str, float]:
    """Return the share of padding in the tables of the first batches."""
    kinds = {"same batches": data.stream.batch, "random batches": data.random_batch}
    return {
        name: round(float(np.mean([batch(number).padding for number in range(10)])), 3)
        for name, batch in kinds.items()
    }


def count_parameters(size: Size) -> int:
    """Return the number of all parameters."""
    with torch.device("meta"):
        return sum(map(Tensor.numel, build_model(size.model, size.vocab_size).parameters()))


def make_trainers(size: Size, case: Case, data: TrainingData) -> dict[str, Trainer]:
    """Return ours, and the peer on our batches and, in the first case, on random ones."""
    shape, cycle = (size.model, size.vocab_size), size.batches
    trainers: dict[str, Trainer] = {OURS: OurTrainer(*shape, case, data, batches=cycle)}
    if is_installed("transformers"):
        trainers[SAME] = TheirTrainer(*shape, case, lambda number: data.stream.batch(number % cycle))
        if case == ADAMW and size.random_steps:
            trainers[RANDOM] = TheirTrainer(*shape, case, data.random_batch)
    return trainers


def compare(
    size: Size, case: Case, data: TrainingData, *, steps: int | None = None, seconds: float = math.inf
) -> dict[str, Figures]:
    """Return rates, ratios, shares of the peak and losses of the trainers, which take turns.

    Args:
        size: The model.
        case: How it is trained.
        data: The batches.
        steps: Timed steps of each trainer; by default those of `size`.
        seconds: Time after which no further step begins, from the third on.
    """
    trainers = make_trainers(size, case, data)
    warm_up = WARM_UP_COMPILED if case.compile else size.batches
    measured: dict[str, list[Step]] = {name: [] for name in trainers}
    end = math.inf
    for number in range(warm_up + (steps or size.steps)):
        if number == warm_up:
            check_first_losses(measured, case)
            end = time.perf_counter() + seconds
        if number >= warm_up + LEAST_STEPS and time.perf_counter() > end:
            break
        for name, trainer in trainers.items():
            if name != RANDOM or number < warm_up + size.random_steps:
                measured[name].append(timed_step(trainer, number))
    rows = {name: summarise(some, warm_up) for name, some in measured.items()}
    if SAME in measured:
        seconds_of = {name: [step.seconds for step in measured[name][warm_up:]] for name in (SAME, OURS)}
        rows[SAME].update(ratios(seconds_of[SAME], seconds_of[OURS]))
    add_shares_of_peak(rows, size, case, data)
    return rows


def check_first_losses(measured: Mapping[str, Sequence[Step]], case: Case) -> None:
    """Compare the losses before any update, where they should be the same.

    Raises:
        RuntimeError: Ours and the peer's differ by more than 1e-5.
    """
    losses = {name: measured[name][0].loss for name in (OURS, SAME) if name in measured}
    if SAME in losses and case == NO_DROPOUT and abs(losses[OURS] / losses[SAME] - 1) > TOLERANCE:
        raise RuntimeError(f"ours and transformers' T5 differ: {losses}")


def add_shares_of_peak(rows: Mapping[str, Figures], size: Size, case: Case, data: TrainingData) -> None:
    """Add to each row the share of the product peak that its steps reach."""
    flops, peak = flops_per_token(size, data, size.batches), product_peak(case.precision)
    for row in rows.values():
        row["share_of_peak"] = round(flops * row["tokens_per_second"] / peak, 3)
        row["share_range"] = [round(flops * rate / peak, 3) for rate in row["range"]]
        row["peak_gflops"] = round(peak / 1e9)


def flops_per_token(size: Size, data: TrainingData, batches: int) -> float:
    """Return the FLOPs of a source or target token in the first batches, on average."""
    src_tokens, tgt_tokens = map(sum, zip(*map(data.stream.tokens, range(batches)), strict=True))
    flops = training_flops(size.model, size.vocab_size, src_tokens=src_tokens, tgt_tokens=tgt_tokens)
    return flops / (src_tokens + tgt_tokens)


def product_peak(precision: str) -> float:
    """Return the FLOP/s of the fastest large product, by torch or oneDNN."""
    dtype = PRECISIONS[precision]

    def time_product(size: int) -> float:
        a, b = torch.ones(2, size, size, dtype=dtype)
        return min(processor_seconds(partial(torch.matmul, a, b)) for _ in range(4))

    return max(fastest_rate(time_product) for _ in range(3))


def processor_seconds(call: Callable[[], object]) -> float:
    """Return the seconds of one call: the processor's with one thread, as steps are timed."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    call()
    return clock() - start


def summarise(measured: Sequence[Step], warm_up: int) -> Figures:
    """Return the rates of one trainer; its first steps do not count."""
    steps = measured[warm_up:]
    rates = sorted(step.tokens / step.seconds for step in steps)
    return {
        "tokens_per_second": round(median(rates)),
        "range": [round(rates[0]), round(rates[-1])],
        "warm_up_seconds": round(sum(step.seconds for step in measured[:warm_up]), 1),
        "first_loss": round(measured[0].loss, 4),
        "last_loss": round(steps[-1].loss, 4),
    }


if __name__ == "__main__":
    run(main, smoke={"threads": 1, "sizes": ("d64",), "batch_tokens": 512, "steps": 3})
