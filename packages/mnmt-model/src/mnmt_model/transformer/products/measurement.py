"""Timing the ways of products on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial

import torch
from torch import Tensor

from mnmt_model.transformer.products.table import Products
from mnmt_model.transformer.products.ways import SINGLE, WAYS, Shape, can_take

SECONDS = 2.0
"""The time that the measurement of a model's products takes at most, about."""

ROUNDS = 20
"""Turns that each way gets at most, and `MIN_ROUNDS` at least."""

MIN_ROUNDS = 4

TURN_SECONDS = 2e-4
"""A turn repeats a product that takes less."""

MARGIN = 1.03
"""A way must be so many times faster than torch's own to be taken instead."""

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
    """Return the way of each shape: the fastest, or torch's own if none is faster by `MARGIN`."""
    ways = {}
    for shape, seconds in times.items():
        default, best = WAYS[shape.kind][0], min(seconds, key=lambda way: seconds[way])
        ways[shape] = best if seconds[best] * MARGIN < seconds.get(default, 0.0) else default
    return ways


def _race(shape: Shape, chosen: Mapping[Shape, str], seconds: float) -> dict[str, float]:
    """Return the shortest turn of each way, in seconds a product."""
    smaller = _bounded(shape)
    work = _work(smaller)
    parts = {
        smaller._replace(kind=kind): chosen[part]
        for kind in SINGLE
        if (part := shape._replace(kind=kind)) in chosen
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
    """Return what computes such a product of random matrices."""
    number, rows, inner, columns = shape[2:]
    # Torch's own generator must not notice, since dropout draws from it.
    generator = torch.Generator().manual_seed(0)
    draw = partial(torch.randn, generator=generator, dtype=getattr(torch, shape.dtype))
    if shape.kind == "experts":
        x, weight = draw(number, rows, inner), draw(number, inner, columns)
        return _with_gradients(Products.experts, x, weight, draw(number, rows, columns))
    if shape.kind == "ragged":
        states, weights = draw(rows, inner), draw(number, inner, columns)
        ends = torch.arange(1, number + 1) * rows // number
        return torch.no_grad()(lambda products: products.ragged_experts(states, weights, ends))
    x, weight, gradient = draw(rows, inner), draw(columns, inner), draw(rows, columns)
    if shape.kind == "linear":
        return _with_gradients(Products.linear, x, weight, gradient)
    operands = {"forward": (x, weight), "grad_input": (gradient, weight), "grad_weight": (gradient, x)}
    return lambda products: getattr(products, shape.kind)(*operands[shape.kind])


def _with_gradients(
    apply: Callable[[Products, Tensor, Tensor], Tensor], x: Tensor, weight: Tensor, gradient: Tensor
) -> Callable[[Products], object]:
    inputs = (x.requires_grad_(), weight.requires_grad_())
    return lambda products: torch.autograd.grad(apply(products, *inputs), inputs, gradient)
