"""Timing the ways of products on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import cycle

import torch
from torch import Tensor

from mnmt_model.transformer.products.table import Products
from mnmt_model.transformer.products.ways import SINGLE, WAYS, Shape, can_take

SECONDS = 2.0
"""The time that the measurement of a model's products takes at most, about."""

ROUNDS = 20
"""Turns that each way gets at most, and `MIN_ROUNDS` at least."""

MIN_ROUNDS = 4

COLD_BYTES = 2**23
"""Operands of a product in turn; a model's, too, have left the caches near a core when they are used."""

MAX_COPIES = 16

TURN_SECONDS = 2e-4
"""A turn repeats a product that takes less."""

MARGIN = 1.1
"""A way must be so many times faster than torch's own to be taken instead."""

LEAST_GAIN = 5e-5
"""Seconds that a way must save; whole steps of d 16 were slower with products that saved less."""

MAX_FLOPS = 2**27
"""A larger product is timed at fewer rows, then at fewer columns; it is as fast, FLOP by FLOP."""


def measure(
    shapes: Collection[Shape], *, known: Mapping[Shape, str] | None = None, seconds: float = SECONDS
) -> dict[Shape, dict[str, float]]:
    """Return the seconds that each way takes for each of the shapes, at best.

    Ways take turns, so that other work of the machine falls on all alike.

    Args:
        shapes: The shapes; a linear map needs those of its three products among them, or known.
        known: The ways of shapes that were measured before.
        seconds: The time that this takes, about; each way has a few turns in any case.
    """
    times: dict[Shape, dict[str, float]] = {}
    end = time.perf_counter() + seconds
    # A map of separate products needs their ways.
    order = sorted(shapes, key=lambda shape: shape.kind == "linear")
    with torch.enable_grad():
        for number, shape in enumerate(order):
            share = (end - time.perf_counter()) / (len(order) - number)
            times[shape] = _race(shape, {**(known or {}), **fastest(times)}, share)
    return times


def fastest(times: Mapping[Shape, Mapping[str, float]]) -> dict[Shape, str]:
    """Return the way of each shape: the fastest, or torch's own if none is clearly faster."""
    ways = {}
    for shape, seconds in times.items():
        default, best = WAYS[shape.kind][0], min(seconds, key=lambda way: seconds[way])
        torchs = seconds.get(default, 0.0)
        is_faster = seconds[best] * MARGIN < torchs and seconds[best] + LEAST_GAIN < torchs
        ways[shape] = best if is_faster else default
    return ways


def _race(shape: Shape, ways: Mapping[Shape, str], seconds: float) -> dict[str, float]:
    """Return the shortest turn of each way, in seconds a product."""
    smaller = _bounded(shape)
    work = _work(smaller)
    parts = {
        smaller._replace(kind=kind): ways[part]
        for kind in SINGLE
        if (part := shape._replace(kind=kind)) in ways
    }
    calls = {
        way: partial(work, Products(ways={**parts, smaller: way}))
        for way in WAYS[shape.kind]
        if can_take(way, shape)
    }
    end = time.perf_counter() + seconds
    repeats = {way: _repeats(call) for way, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for number in range(ROUNDS):
        if number >= MIN_ROUNDS and time.perf_counter() > end:
            break
        for way, call in calls.items():
            best[way] = min(best[way], _seconds(call, repeats[way]))
    return best


def _seconds(call: Callable[[], object], repeats: int) -> float:
    # A thread's own clock stands still while other processes have its core.
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    for _ in range(repeats):
        call()
    return (clock() - start) / repeats


def _repeats(call: Callable[[], object]) -> int:
    """Return how often a turn repeats `call`, which warms up here."""
    call()
    return max(1, round(TURN_SECONDS / max(_seconds(call, 1), 1e-7)))


def _bounded(shape: Shape) -> Shape:
    """Return `shape`, or a smaller product of its kind."""
    limit = MAX_FLOPS * torch.get_num_threads()
    for size, smallest in (("rows", 256), ("columns", 1024), ("inner", 1024)):
        while _flops(shape) > limit and getattr(shape, size) >= 2 * smallest:
            shape = shape._replace(**{size: getattr(shape, size) // 2})
    return shape


def _flops(shape: Shape) -> int:
    maps = 1 if shape.kind == "ragged" else shape.number
    return 2 * maps * shape.rows * shape.inner * shape.columns


def _work(shape: Shape) -> Callable[[Products], object]:
    """Return what computes such a product of random matrices, with others at each call."""
    number, rows, inner, columns = shape[2:]
    operands = _operands(shape.dtype, (rows, inner), (columns, inner), (rows, columns))
    if shape.kind == "linear":
        return lambda products: _with_gradients(products.linear, *next(operands))
    if shape.kind == "experts":
        sizes = ((rows, inner), (inner, columns), (rows, columns))
        triples = _operands(shape.dtype, *((number, *size) for size in sizes))
        return lambda products: _with_gradients(products.experts, *next(triples))
    if shape.kind == "ragged":
        pairs = _operands(shape.dtype, (rows, inner), (number, inner, columns))
        ends = torch.arange(1, number + 1) * rows // number
        return torch.no_grad()(lambda products: products.ragged_experts(*next(pairs), ends))
    first, second = {"forward": (0, 1), "grad_input": (2, 1), "grad_weight": (2, 0)}[shape.kind]

    def compute(products: Products) -> Tensor:
        matrices = next(operands)
        product: Tensor = getattr(products, shape.kind)(matrices[first], matrices[second])
        return product

    return compute


def _operands(dtype: str, *sizes: tuple[int, ...]) -> Iterator[list[Tensor]]:
    """Yield matrices of these sizes for ever, from so much memory that the caches near a core lose them."""
    # Torch's own generator must not notice, since dropout draws from it.
    generator = torch.Generator().manual_seed(0)
    first = [torch.randn(size, generator=generator, dtype=getattr(torch, dtype)) for size in sizes]
    copies = COLD_BYTES // sum(each.nbytes for each in first)
    return cycle([first, *([each.clone() for each in first] for _ in range(min(copies, MAX_COPIES)))])


def _with_gradients(
    apply: Callable[[Tensor, Tensor], Tensor], x: Tensor, weight: Tensor, gradient: Tensor
) -> object:
    inputs = (x.detach().requires_grad_(), weight.detach().requires_grad_())
    return torch.autograd.grad(apply(*inputs), inputs, gradient)
