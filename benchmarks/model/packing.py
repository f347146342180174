"""Several models as one program.

Claim: K runs of one size take less time a step as one compiled program than one after the other. Peers: the
same trainer with each run alone, and the same stack without compilation. Cited in docs/model/packing.md.

Models are those of the embedded study, whose batches are 256 phrases over a vocabulary of 160, and one of
d_model 64 over 1,000 words and sentences of 8. Each way makes whole steps: batch, gradients, clipping and
update. The ways take turns, so that other work of the machine falls on all of them. Printed are steps of one
model a second, median and range over the turns, and the ratio to training alone; `compile` is the time until
the first step of a program that no cache holds. All of it takes about half an hour on one core.

    python -m benchmarks.model.packing --out benchmarks/results/model/packing.json
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

from benchmarks.measurement import (
    Counts,
    Figures,
    Names,
    Out,
    print_table,
    provenance,
    ratios,
    run,
    write_report,
)
from mnmt_data.prepare import prepare_study
from mnmt_data.store import open_prepared
from mnmt_data.study import read_study
from mnmt_model import RunConfig, run_configs
from mnmt_model.distributed.world import World
from mnmt_model.runs.kernels import training_products
from mnmt_model.training.packed_models import PackedModels
from mnmt_model.training.run_state import RunState
from mnmt_model.training.single_model import SingleModel, new_state
from mnmt_model.training.trainer import Trainer

STUDY = """
name = "packing"
[data]
tasks = ["xx-aa", "xx-bb"]
[data.vocab]
kind = "word"
size = {vocab}
[data.synthetic]
languages = ["aa", "bb"]
concepts = 6000
zipf_exponent = 1.4
words_per_sentence = {words}
source_syllables = 2
target_syllables = 2
syllable_inventory = {syllables}
train_sentences = 30000
dev_sentences = 10
test_sentences = 10
seed = 1
[model]
encoder_layers = 1
decoder_layers = 1
num_heads = 2
[train]
optimizer = "adafactor"
learning_rate = 0.05
steps = 100000
batch_tokens = 2816
log_every = 100000
checkpoint_every = 100000
[sweep.sizes]
d12 = {{ d_model = 12, head_dim = 6, d_ff = 48 }}
d16 = {{ d_model = 16, head_dim = 8, d_ff = 64 }}
d32 = {{ d_model = 32, head_dim = 16, d_ff = 128 }}
d64 = {{ d_model = 64, head_dim = 32, d_ff = 256 }}
[sweep.fit]
sizes = ["d12", "d16", "d32", "d64"]
mixtures = [{{ xx-aa = 0.4, xx-bb = 0.6 }}]
"""
TEXTS: Mapping[str, Mapping[str, int]] = {
    "d12": {"vocab": 160, "words": 2, "syllables": 128},
    "d16": {"vocab": 160, "words": 2, "syllables": 128},
    "d32": {"vocab": 160, "words": 2, "syllables": 128},
    "d64": {"vocab": 1000, "words": 8, "syllables": 900},
}
"""{size: its text}."""
BACKENDS = {"stacked": "eager", "compiled": "inductor"}
"""{way: what `torch.compile` does}."""


def make_states(size: str, number: int, folder: Path) -> list[RunState]:
    """Return states of runs that differ in their seeds."""
    study = folder / f"{size}.toml"
    results = folder / size
    if not results.exists():
        study.write_text(STUDY.format(**TEXTS[size]), encoding="utf-8")
        prepare_study(read_study(study), results)
    runs = run_configs(read_study(study), results / "data")
    first = next(each for each in runs if each.name.startswith(f"{size}_"))
    seeds = [replace(first, seed=seed) for seed in range(number)]
    return [make_state(each, Path(tempfile.mkdtemp(dir=folder))) for each in seeds]


def make_state(config: RunConfig, folder: Path) -> RunState:
    """Return the state of a run at its first step."""
    data = open_prepared(config.data)
    products = training_products(config.model, data.vocab.size, config.train)
    state, _ = new_state(config, folder, data, World(), products=products)
    state.model.train()
    return state


def seconds_of_step(trainer: Trainer) -> float:
    """Take the next step of all runs; return its seconds a model."""
    start = time.perf_counter()
    trainer._step(trainer.runs[0].progress.step + 1)
    return (time.perf_counter() - start) / len(trainer.runs)


def measure(size: str, counts: Sequence[int], ways: Sequence[str], turns: int, folder: Path) -> list[Figures]:
    """Return the figures of all ways to train models of a size, which take turns."""
    (state,) = make_states(size, 1, folder)
    trainers = {"alone": Trainer([state], SingleModel(state, state.model))}
    compilation: dict[str, float] = {}
    for number in counts:
        for name in ways:
            states = make_states(size, number, folder)
            way = f"{name}, K = {number}"
            start = time.perf_counter()
            trainers[way] = Trainer(states, PackedModels(states, backend=BACKENDS[name]))
            seconds_of_step(trainers[way])
            if name == "compiled":
                compilation[way] = time.perf_counter() - start
                print(f"{size}, {way}: {compilation[way]:.0f} s to compile", file=sys.stderr, flush=True)
    for trainer in [*trainers.values()] * 2:
        seconds_of_step(trainer)
    seconds: dict[str, list[float]] = {way: [] for way in trainers}
    for _ in range(turns):
        for way, trainer in trainers.items():
            seconds[way].append(seconds_of_step(trainer))
    for trainer in trainers.values():
        with closing(trainer):
            continue
    return [_row(size, way, times, seconds["alone"], compilation.get(way)) for way, times in seconds.items()]


def _row(
    size: str, way: str, times: Sequence[float], alone: Sequence[float], compilation: float | None
) -> Figures:
    rates = sorted(1 / each for each in times)
    return {
        "size": size,
        "way": way,
        "steps_per_second": round(median(rates), 1),
        "range": f"{rates[0]:.1f} to {rates[-1]:.1f}",
        **ratios(alone, times),
        "compile_seconds": None if compilation is None else round(compilation, 1),
    }


def main(
    *,
    sizes: Names = ("d12", "d16", "d32", "d64"),
    counts: Counts = (2, 4, 8),
    ways: Names = ("stacked", "compiled"),
    turns: int = 30,
    threads: int = 1,
    out: Out = None,
) -> None:
    """Measure.

    Args:
        sizes: Models.
        counts: Numbers of models in a program.
        ways: Ways to train them together; each compiled one first takes a minute or two.
        turns: Steps of each way.
        threads: Threads of torch, as many as a run of a sweep has.
        out: JSON file for the figures.
    """
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/compiled"
        rows = [row for size in sizes for row in measure(size, counts, ways, turns, Path(folder))]
    print_table(rows)
    description = provenance("mnmt-model", "torch")
    write_report(out, "steps of one model a second", {"threads": threads, "rows": rows}, description)


if __name__ == "__main__":
    run(main, smoke={"sizes": ("d12",), "counts": (2,), "ways": ("stacked",), "turns": 2})
