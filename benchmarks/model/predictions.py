"""How well a plan's two-second measurement predicts training, and how long training waits for batches.

Plans a study of several widths, trains a run of each, and compares the seconds. Then trains with batches
read ahead and with batches read when they are due, from token shards in the page cache and from shards that
were dropped out of it. All kinds take turns, so that what else the machine does falls on all alike.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import torch

from benchmarks.measurement import Counts, Figures, Out, print_table, provenance, run, write_report
from benchmarks.studies import prepare, write_study
from mnmt_data import PreparedData, open_prepared, read_study
from mnmt_data.stream import BatchReader, Mixture, StepBatch, open_stream
from mnmt_model import RunConfig, read_run, run_configs, train
from mnmt_model.distributed.world import World
from mnmt_model.optim import clip_gradients, make_optimizer
from mnmt_model.planning import PlanConfig
from mnmt_model.sweep.schedule import Machines
from mnmt_model.sweep.study_plan import plan_study
from mnmt_model.training.expert_balance import ExpertBalance
from mnmt_model.training.gradient_step import GradientStep
from mnmt_model.training.parallel import make_trainable
from mnmt_model.transformer.build import build_model, initialise

RESULTS = Path(__file__).parents[1] / "results/model/predictions.json"


class Direct(BatchReader):
    """Reads a batch when it is asked for."""

    def read(self, step: int) -> StepBatch:
        """Return the batch of a step."""
        since = perf_counter()
        (part,), (src_tokens, tgt_tokens) = self.stream.share(step, self.share), self.stream.tokens(step)
        self._waited += perf_counter() - since
        return StepBatch(
            step=step,
            parts=(part,),
            src_tokens=src_tokens,
            tgt_tokens=tgt_tokens,
            piece_tokens=np.array([[[src_tokens, tgt_tokens]]]),
        )


def main(
    *,
    widths: Counts = (12, 24, 48, 96),
    steps: int = 100,
    rounds: int = 3,
    sentences: int = 620_000,
    folder: Path = Path("results/benchmark-predictions"),
    out: Out = RESULTS,
) -> None:
    """Measure.

    Args:
        widths: Values of `d_model`.
        steps: Steps of a run.
        rounds: Times that each is measured.
        sentences: Training sentences of each task.
        folder: Folder of the data and runs.
        out: A JSON file for the figures.
    """
    path = _study(folder, widths, steps, sentences)
    data = prepare(path, folder)
    configs = run_configs(read_study(path), data)
    figures: Figures = {
        "predicted": _predictions(path, data, configs, rounds),
        "batches": [
            row
            for config in (configs[0], configs[len(configs) // 2])
            for row in _readers(config, open_prepared(data), steps, rounds)
        ],
    }
    print_table(figures["predicted"])
    print_table(figures["batches"])
    write_report(out, __doc__.splitlines()[0], figures, provenance("torch", "mnmt-model"))


def _study(folder: Path, widths: Sequence[int], steps: int, sentences: int) -> Path:
    return write_study(
        folder / "predictions.toml",
        widths=widths,
        data=f"train_sentences = {sentences}\ndev_sentences = 1000\ntest_sentences = 1000",
        train=f"steps = {steps}\nbatch_tokens = 2816\neval_every = 0",
    )


def _predictions(path: Path, data: Path, configs: Sequence[RunConfig], rounds: int) -> list[dict[str, Any]]:
    """Return predicted and real seconds of each run; a plan comes before each round of runs."""
    predicted: dict[str, list[float]] = {config.name: [] for config in configs}
    real: dict[str, list[float]] = {config.name: [] for config in configs}
    for _ in range(rounds):
        # The same threads as in training here.
        machines = Machines(jobs=max(1, (os.cpu_count() or 1) // torch.get_num_threads()))
        for cost in plan_study(read_study(path), data, PlanConfig(), machines, measure=True).runs:
            predicted[cost.name].append(cost.seconds or 0.0)
        for config in configs:
            with TemporaryDirectory(dir=data.parent) as place:
                train(config, Path(place))
                real[config.name].append(read_run(Path(place)).wall_seconds or 0.0)
    return [
        {
            "run": name.split("_")[0],
            "predicted (s)": round(median(predicted[name]), 2),
            "range": _range(predicted[name]),
            "real (s)": round(median(real[name]), 2),
            "its range": _range(real[name]),
            "predicted / real": round(
                median(p / r for p, r in zip(predicted[name], real[name], strict=True)), 2
            ),
        }
        for name in predicted
    ]


def _ratio(values: Sequence[float], others: Sequence[float]) -> float:
    return median(value / other for value, other in zip(values, others, strict=True))


def _readers(config: RunConfig, data: PreparedData, steps: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield a row for batches read when due and read ahead, from warm and from cold shards."""
    kinds = list(product((Direct, BatchReader), ("warm", "cold")))
    seconds: dict[Any, list[float]] = {kind: [] for kind in kinds}
    waits: dict[Any, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for reader, shards in kinds:
            total, waited = _train(config, data, reader, steps, cold=shards == "cold")
            seconds[reader, shards].append(total)
            waits[reader, shards].append(waited)
    for reader, shards in kinds:
        times = [1000 * total / steps for total in seconds[reader, shards]]
        yield {
            "run": config.name.split("_")[0],
            "batches": "when due" if reader is Direct else "read ahead",
            "shards": shards,
            "ms a step": round(median(times), 2),
            "range": _range(times),
            "data_wait": round(_ratio(waits[reader, shards], seconds[reader, shards]), 4),
        }


def _train(
    config: RunConfig, data: PreparedData, reader: type[BatchReader], steps: int, *, cold: bool
) -> tuple[float, float]:
    """Return the seconds of some steps after the first, and those in which they waited for batches."""
    model = build_model(config.model, data.vocab.size)
    initialise(model, 1)
    world = World()
    trainable, optimizer = make_trainable(model, config.train, world), make_optimizer(model, config.train)
    mixture = Mixture(dict(config.mixture))
    stream = open_stream(data, mixture, config.train.mixing, batch_tokens=config.train.batch_tokens, seed=1)
    if cold:
        _drop(data.folder)
    with closing(reader(stream)) as batches:
        experts = ExpertBalance(model, config.train, world)
        gradients = GradientStep(trainable, config.train, batches, world, seed=1, experts=experts)
        for step in range(steps + 1):
            if step == 1:
                since = perf_counter()
                batches.take_waited()
            gradients(step + 1)
            clip_gradients(model.parameters(), 0.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return perf_counter() - since, batches.take_waited()


def _drop(folder: Path) -> None:
    """Drop the shards out of the page cache, where the system can."""
    if hasattr(os, "posix_fadvise"):
        for path in folder.glob("shards/train.*/*.arrow"):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2f}–{max(values):.2f}"


if __name__ == "__main__":
    run(
        main,
        smoke={
            "widths": (8, 12, 16),
            "steps": 4,
            "rounds": 1,
            "sentences": 3000,
            "folder": Path("results/benchmark-predictions-smoke"),
            "out": None,
        },
    )
