"""Timing the ways of products on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import cycle

import torch
from torch import Tensor

from mnmt_model.transformer.native import has_library
from mnmt_model.transformer.products.table import Products
from mnmt_model.transformer.products.ways import EXPERTS, SINGLE, WAYS, Kind, Shape, can_take

SECONDS = 2.0
"""The time that the measurement of a model's products takes, about."""

LEAST_ROUNDS, ROUNDS = 2, 20
"""Turns that each way gets at least, and at most."""

COLD_BYTES = 2**23
"""Operands of a product in turn; a model's, too, have left the caches near a core when they are used."""

MAX_COPIES = 16

TURN_SECONDS = 2e-4
"""A turn repeats a product that takes less."""

MARGIN = 1.1
"""A way must be so many times faster than torch's own to be taken instead."""

LEAST_GAIN = 5e-5
"""Seconds that a library's way of a product must save: whole steps of d 16 were slower with oneDNN's that
saved less. Our own in C++ are as fast in a step as by themselves."""

MAX_FLOPS = 2**27
"""A larger product is timed with fewer experts, rows, then columns; it is as fast, FLOP by FLOP."""

OF_PARAMETERS = ("clipping", "adafactor")
"""What is computed of all parameters."""

ELEMENT_FLOPS = 32
"""What an element of a parameter counts; steps of more than 4 M are timed with fewer parameters."""


Work = Callable[[Shape], Callable[[Products], object]]
"""Returns what computes an operation of a shape, with random numbers, in the way of a table."""


def measure(
    shapes: Collection[Shape],
    *,
    works: Mapping[Kind, Work] | None = None,
    known: Mapping[Shape, str] | None = None,
    seconds: float = SECONDS,
    max_flops: int = MAX_FLOPS,
) -> dict[Shape, dict[str, float]]:
    """Return the seconds that each way takes for each of the shapes, at best.

    Ways take turns, so that other work of the machine falls on all alike. Large products come first. All are
    timed, so that all runs on a machine take the same ways.

    Args:
        shapes: The shapes; a linear map needs those of its three products among them, or known.
        works: What computes the operations that are no products.
        known: The ways of shapes that were measured before.
        seconds: The time that this takes, about; on a slow or busy machine it takes longer.
        max_flops: See `MAX_FLOPS`, of a thread.
    """
    # Whoever asks first compiles the operations, which takes seconds and is no part of the measurement.
    has_library()
    times: dict[Shape, dict[str, float]] = {}
    end = time.perf_counter() + seconds
    # A map of separate products needs their ways.
    order = sorted(shapes, key=lambda shape: (-_flops(shape), shape[1:], shape.kind == "linear"))
    # Torch's own generator must not notice, since dropout draws from it.
    with torch.enable_grad(), torch.random.fork_rng(devices=[]):
        for number, shape in enumerate(order):
            share = (end - time.perf_counter()) / (len(order) - number)
            work = (works or {}).get(shape.kind, _product)
            smaller = _bounded(shape, max_flops * torch.get_num_threads())
            times[shape] = _race(shape, smaller, work, {**(known or {}), **fastest(times)}, share)
    return times


def fastest(times: Mapping[Shape, Mapping[str, float]]) -> dict[Shape, str]:
    """Return the way of each shape: the fastest, or torch's own if none is clearly faster."""
    ways = {}
    for shape, seconds in times.items():
        default = WAYS[shape.kind][0]
        torchs = seconds.get(default, 0.0)
        faster = [way for way in seconds if _is_clearly_faster(shape.kind, way, seconds[way], torchs)]
        ways[shape] = min(faster, key=lambda way: seconds[way], default=default)
    return ways


def _is_clearly_faster(kind: Kind, way: str, seconds: float, torchs: float) -> bool:
    if way == "native" and kind in EXPERTS:
        # Libraries write machine code for each new number of rows, which a measurement of one does not see.
        return seconds < torchs
    least = 0.0 if way == "native" else LEAST_GAIN
    return seconds * MARGIN < torchs and seconds + least < torchs


def _race(
    shape: Shape, smaller: Shape, work: Work, ways: Mapping[Shape, str], seconds: float
) -> dict[str, float]:
    """Return the seconds of an operation in each way, by the shortest turn of a smaller one."""
    compute = work(smaller)
    parts = {
        smaller._replace(kind=kind): ways[part]
        for kind in SINGLE
        if (part := shape._replace(kind=kind)) in ways
    }
    calls = {
        way: partial(compute, Products(ways={**parts, smaller: way}))
        for way in WAYS[shape.kind]
        if can_take(way, shape)
    }
    end = time.perf_counter() + seconds
    repeats = {way: _repeats(call) for way, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() > end:
            break
        for way, call in calls.items():
            best[way] = min(best[way], _seconds(call, repeats[way]))
    return {way: each * _flops(shape) / _flops(smaller) for way, each in best.items()}


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


def _bounded(shape: Shape, limit: int) -> Shape:
    """Return `shape`, or a smaller product of its kind, of not many more FLOPs than the limit."""
    if shape.kind in EXPERTS:
        return _fewer_experts(shape, limit)
    numbers = {"number": 1} if shape.kind in OF_PARAMETERS else {}
    for size, smallest in {**numbers, "rows": 256, "columns": 1024, "inner": 1024}.items():
        while _flops(shape) > limit and getattr(shape, size) >= 2 * smallest:
            shape = shape._replace(**{size: getattr(shape, size) // 2})
    return shape


def _fewer_experts(shape: Shape, limit: int) -> Shape:
    """Return the shape of two experts at least, each with as many rows, if that is enough."""
    while _flops(shape) > limit and shape.number >= 4:
        shape = shape._replace(number=shape.number // 2, rows=max(1, shape.rows // 2))
    while _flops(shape) > limit and shape.rows >= 1024:
        shape = shape._replace(rows=shape.rows // 2)
    return shape


def _flops(shape: Shape) -> int:
    maps = 1 if shape.kind in EXPERTS else shape.number
    each = ELEMENT_FLOPS if shape.kind in OF_PARAMETERS else 2
    return each * maps * shape.rows * shape.inner * shape.columns


def _product(shape: Shape) -> Callable[[Products], object]:
    """Return what computes such a product of random matrices, with others at each call."""
    rows, inner, columns = shape[3:]
    operands = _operands(shape.dtype, (rows, inner), (columns, inner), (rows, columns))
    if shape.kind == "linear":
        return lambda products: _with_gradients(products.linear, *next(operands))
    if shape.kind in EXPERTS:
        return _experts_product(shape)
    first, second = {"forward": (0, 1), "grad_input": (2, 1), "grad_weight": (2, 0)}[shape.kind]

    def compute(products: Products) -> Tensor:
        matrices = next(operands)
        product: Tensor = getattr(products, shape.kind)(matrices[first], matrices[second])
        return product

    return compute


def _experts_product(shape: Shape) -> Callable[[Products], object]:
    number, rows, inner, columns = shape[2:]
    operands = _operands(shape.dtype, (rows, inner), (number, inner, columns), (rows, columns))
    # Every other expert has 5/3 times the rows of its neighbours, as experts have about.
    shares = 1 + torch.arange(1, number + 1).remainder(2) * 2 / 3
    ends = (shares.cumsum(0) * rows / shares.sum()).round().int()

    @torch.no_grad()
    def compute(products: Products) -> Tensor:
        x, weights, gradient = next(operands)
        if shape.kind == "experts_forward":
            return products.experts(x, weights, ends)
        if shape.kind == "experts_grad_input":
            return products.experts_grad_input(gradient, weights, ends)
        return products.experts_grad_weights(gradient, x, weights, ends)

    return compute


def _operands(dtype: str, *sizes: tuple[int, ...]) -> Iterator[list[Tensor]]:
    """Yield matrices of these sizes for ever, from so much memory that the caches near a core lose them."""
    first = [torch.randn(size, dtype=getattr(torch, dtype)) for size in sizes]
    copies = COLD_BYTES // sum(each.nbytes for each in first)
    return cycle([first, *([each.clone() for each in first] for _ in range(min(copies, MAX_COPIES)))])


def _with_gradients(
    apply: Callable[[Tensor, Tensor], Tensor], x: Tensor, weight: Tensor, gradient: Tensor
) -> object:
    inputs = (x.detach().requires_grad_(), weight.detach().requires_grad_())
    return torch.autograd.grad(apply(*inputs), inputs, gradient)
