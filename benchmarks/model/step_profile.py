r"""Where the time of a training step goes, and what share of the product peak its products alone would reach.

Claim: small models spend most of a step outside matrix products. The peer is the limit: a step that computes
its matrix products, each in the fastest way measured here, and nothing else. Cited in docs/model/measured.md.

A step is profiled by torch, with one thread. Its time is divided into products; other operators of torch
(`elementwise`: also copies, reductions and random numbers); operators of mnmt-model's own in C++ (`native`,
without products that torch computes within); masks that NumPy draws; and `python`: all that is between
operators, which is Python, NumPy and autograd. An operator's time includes its dispatch, of about a
microsecond. The profiler slows a step; what it adds is taken from what calls operators, in proportion to the
calls. Steps with and without the profiler take turns on one batch, and the fastest of each counts, which
other work of the machine disturbed least. `of a few tokens` is the time of a step of one pair: Python,
dispatch and optimiser.

The limit's products are those that the model asks for and those of attention, of padded tables. The share of
the peak counts the FLOPs of `training_flops`, which leaves attention's out, for step and limit alike.

    python -m benchmarks.model.step_profile --out benchmarks/results/model/step_profile.json
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, seconds_of, write_report
from benchmarks.model.trainers import Case, OurTrainer
from benchmarks.model.training_data import BatchCycle, TrainingData, open_data
from benchmarks.model.training_speed import ADAMW, BFLOAT16, NO_DROPOUT, SIZES, Size, product_peak
from mnmt_data.stream import Batch
from mnmt_data.stream.batch_reader import StepBatch
from mnmt_model import ModelConfig
from mnmt_model.planning import training_flops
from mnmt_model.training import PRECISIONS
from mnmt_model.transformer import native
from mnmt_model.transformer.modules import Dropout
from mnmt_model.transformer.products import SINGLE, Kind, Products, Shape
from mnmt_model.transformer.products.measurement import measure

PRODUCT = re.compile(r"::_?(mm|addmm|bmm|baddbmm|linear_pointwise|grouped_mm|addmv|mv|dot|product)_?$")
NO_OPERATOR = re.compile(r"^(autograd|torch::autograd)::")
CASES = {"adamw": ADAMW, "no dropout": NO_DROPOUT, "bfloat16": BFLOAT16}
WARM_UP = 3
REPEATS = 5
LIMIT_SECONDS, LIMIT_FLOPS = 6.0, 2**30
"""Time of measuring the limit, and FLOPs of its largest products; larger ones are measured in part."""
LISTED = 25
"""Operators that are listed."""


def main(
    *,
    sizes: Names = ("d64", "d256", "d512"),
    cases: Names = tuple(CASES),
    batch_tokens: int = 4096,
    turns: int = 12,
    out: Out = None,
) -> None:
    """Print a table of each model and case, and one of its operators.

    Args:
        sizes: Models of `training_speed`.
        cases: "adamw" (float32, with dropout), "no dropout" and "bfloat16".
        batch_tokens: Source and target tokens of a batch, on average.
        turns: Steps with the profiler, and as many without.
        out: JSON file for the figures.
    """
    torch.set_num_threads(1)
    figures: Figures = {}
    for name in sizes:
        data = open_data(None, vocab_size=SIZES[name].vocab_size, batch_tokens=batch_tokens)
        for case in cases:
            figures[f"{name}, {case}"] = profile_case(SIZES[name], CASES[case], data, turns)
            report(f"{name}, {case}", figures[f"{name}, {case}"])
    what = f"parts of training steps of {batch_tokens} tokens, 1 thread"
    write_report(out, what, {"steps": figures}, provenance("mnmt-model", "torch", "numpy"))


def profile_case(size: Size, case: Case, data: TrainingData, turns: int) -> Figures:
    """Return the parts of a step in milliseconds, its share of the peak, the limits, and its operators."""
    trainer = OurTrainer(size.model, size.vocab_size, case, data)
    batch = trainer.gradient_step.batches.read(0)
    seconds, events = profile_steps(trainer, batch, turns)
    operators = self_times(events, seconds)
    short, _ = profile_steps(trainer, few_tokens(batch), turns)
    read_always(trainer, batch)
    limit = limit_seconds(trainer)
    attention = attention_seconds(size.model, batch.parts[0], case.precision)
    flops = training_flops(
        size.model, size.vocab_size, src_tokens=batch.src_tokens, tgt_tokens=batch.tgt_tokens
    )
    peak = product_peak(case.precision)
    times = {"products at their fastest": limit, "those of attention": attention, "of a few tokens": short}
    return {
        "milliseconds": {
            "step": round(1e3 * seconds, 2),
            **parts(operators),
            **{name: round(1e3 * each, 2) for name, each in times.items()},
        },
        "share_of_peak": round(flops / peak / seconds, 3),
        "limit": round(flops / peak / limit, 3),
        "limit_with_attention": round(flops / peak / (limit + attention), 3),
        "peak_gflops": round(peak / 1e9),
        "events": sum(calls for calls, _ in operators.values()),
        "operators": [
            {"operator": name, "calls": calls, "milliseconds": round(1e3 * each, 3)}
            for name, (calls, each) in sorted(operators.items(), key=lambda item: -item[1][1])[:LISTED]
        ],
    }


@contextmanager
def recorded_calls() -> Iterator[None]:
    """Let the profiler see what is no operator of torch's: masks that NumPy draws, and our own in C++."""
    mask = recorded(Dropout.mask, lambda *_: "dropout masks")
    run = recorded(native.run, lambda name, *_: f"mnmt::{name}")
    with patch.object(Dropout, "mask", mask), patch.object(native, "run", run):
        yield


def recorded(call: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
    """Return a function that the profiler records under the name of its arguments."""

    @wraps(call)
    def record(*args: Any, **options: Any) -> Any:
        with record_function(name(*args)):
            return call(*args, **options)

    return record


def profile_steps(trainer: OurTrainer, batch: StepBatch, turns: int) -> tuple[float, Any]:
    """Return the seconds of the fastest step of a batch, and the events of the fastest profiled one."""
    read_always(trainer, batch)
    for number in range(WARM_UP):
        trainer.step(number)
    seconds, profiles = [], []
    for number in range(turns):
        seconds.append(seconds_of(partial(trainer.step, number)))
        activities = [ProfilerActivity.CPU]
        with recorded_calls(), profile(activities=activities) as profiler, record_function("step"):
            trainer.step(number)
        profiles.append(profiler.events())
    fastest = min(profiles, key=lambda events: root(events).cpu_time_total)
    return min(*seconds, root(fastest).cpu_time_total / 1e6), fastest


def read_always(trainer: OurTrainer, batch: StepBatch) -> None:
    """Let all steps of a trainer read one batch."""
    cycle = BatchCycle(stream=trainer.stream, batches=(batch,))
    trainer.gradient_step.batches = cycle  # type: ignore[assignment]


def root(events: Any) -> Any:
    """Return the event of the whole step."""
    return next(event for event in events if event.name == "step")


def self_times(events: Any, seconds: float) -> dict[str, tuple[int, float]]:
    """Return {name: (calls, seconds without those that it calls)} of all events, `seconds` in all."""
    start, end = root(events).time_range.start, root(events).time_range.end
    inside = [event for event in events if start <= event.time_range.start and event.time_range.end <= end]
    # What the profiler adds to an event falls on the one that calls it.
    cost = (root(events).cpu_time_total - 1e6 * seconds) / max(1, len(inside) - 1)
    operators: dict[str, tuple[int, float]] = {}
    for event in inside:
        calls, total = operators.get(event.name, (0, 0.0))
        without = event.self_cpu_time_total - cost * len(event.cpu_children)
        operators[event.name] = (calls + 1, total + without / 1e6)
    return operators


def parts(operators: dict[str, tuple[int, float]]) -> dict[str, float]:
    """Return the milliseconds of each part of a step."""
    totals = dict.fromkeys(("products", "elementwise", "native", "dropout masks", "python"), 0.0)
    for name, (_, seconds) in operators.items():
        totals[part(name)] += 1e3 * seconds
    return {name: round(total, 2) for name, total in totals.items()}


def part(name: str) -> str:
    """Return the part that an event belongs to."""
    if name == "dropout masks":
        return name
    if "::" not in name or NO_OPERATOR.search(name):
        return "python"
    if PRODUCT.search(name):
        return "products"
    return "native" if name.startswith("mnmt") else "elementwise"


@dataclass(frozen=True, kw_only=True)
class CountedProducts(Products):
    """Torch's products, whose shapes are counted."""

    shapes: Counter[Shape] = field(default_factory=Counter)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Count the products of a map and of its gradients."""
        for kind in SINGLE:
            self._count(kind, x, len(x), *weight.shape)
        return F.linear(x, weight, bias)

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        """Count a product."""
        self._count("forward", x, len(x), *weight.shape)
        return x @ weight.T

    def grad_input(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Count a product."""
        self._count("grad_input", gradient, len(gradient), *weight.shape)
        return gradient @ weight

    def grad_weight(self, gradient: Tensor, x: Tensor) -> Tensor:
        """Count a product."""
        self._count("grad_weight", x, len(x), gradient.size(1), x.size(1))
        return gradient.T @ x

    def _count(self, kind: Kind, x: Tensor, rows: int, columns: int, inner: int) -> None:
        self.shapes[Shape(kind, str(x.dtype).removeprefix("torch."), 1, rows, inner, columns)] += 1


def limit_seconds(trainer: OurTrainer) -> float:
    """Return the seconds of the products that the model asks for in a step, each in its fastest way."""
    counted = CountedProducts()
    products = trainer.model.products
    trainer.model.use_products(counted)
    trainer.step(0)
    trainer.model.use_products(products)
    times: dict[Shape, dict[str, float]] = {}
    while missing := [shape for shape in counted.shapes if shape not in times]:
        times |= measure(missing, seconds=LIMIT_SECONDS, max_flops=LIMIT_FLOPS)
    return sum(number * min(times[shape].values()) for shape, number in counted.shapes.items())


def attention_seconds(config: ModelConfig, batch: Batch, precision: str) -> float:
    """Return the seconds of the products of queries and keys, and of weights and values, by bmm."""
    src, tgt = (ids.shape[1] for ids in (batch.src, batch.tgt))
    number, width = len(batch.src) * config.num_heads, config.resolved_head_dim
    kinds = Counter({(src, src): config.encoder_layers, (tgt, tgt): config.decoder_layers})
    kinds[tgt, src] += config.decoder_layers
    return sum(
        layers * one_attention(number, queries, keys, width, PRECISIONS[precision])
        for (queries, keys), layers in kinds.items()
    )


def one_attention(number: int, queries: int, keys: int, width: int, dtype: torch.dtype) -> float:
    """Return the seconds of the six products of an attention and its gradients, each at its fastest."""
    q, grad = torch.rand(2, number, queries, width).to(dtype)
    k, v = torch.rand(2, number, keys, width).to(dtype)
    weights = torch.rand(number, queries, keys).to(dtype)
    pairs = [(q, k.mT), (weights, v), (grad, v.mT), (weights.mT, grad), (weights, k), (weights.mT, q)]
    return sum(min(seconds_of(partial(torch.bmm, *pair)) for _ in range(REPEATS)) for pair in pairs)


def few_tokens(batch: StepBatch) -> StepBatch:
    """Return a batch of the first pair."""
    (whole,) = batch.parts
    names = ("src", "tgt", "tasks", "loss_weights", "ids")
    return replace(batch, parts=(replace(whole, **{name: getattr(whole, name)[:1] for name in names}),))


def report(name: str, figures: Figures) -> None:
    """Print the figures of one model and case."""
    shares = {key: value for key, value in figures.items() if not isinstance(value, dict | list)}
    print(f"\n### {name}: milliseconds, and shares of the peak\n")
    print_table([{**figures["milliseconds"], **shares}])
    print_table(figures["operators"])


if __name__ == "__main__":
    run(main, smoke={"sizes": ("d64",), "cases": ("adamw",), "batch_tokens": 512, "turns": 2})
