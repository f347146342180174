"""The operators of mixtures of experts: gate, dispatch and combine, and their bandwidth.

Claim: forward with backward ours are faster than one-hot einsums and sorted pipelines, also compiled, and
dispatch and combine reach half of the bandwidth of a plain copy or more in float32. Peers: the einsums of
Lepikhin et al. 2021 (GShard), and sorting the choices by expert, with index_add or a gather for the way back;
the latter as it is and compiled by torch. Cited in docs/moe/measured.md.

Experts return their inputs. Output and gradients of every route are first compared with ours. Then the routes
take turns. Without drops, ours is compared with the sorted pipelines; at capacity factor 2, with the einsums
in small groups, since their masks grow with the tokens of a group. Bandwidths are the bytes that dispatch,
combine and their gradients must move, over the time, beside copy_. No time has the gate's projection. To
compile beforehand, run it with `--seconds 0`.

    python -m benchmarks.moe.operators --out benchmarks/results/moe/operators.json
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal

import torch
from torch import Tensor

from benchmarks.measurement import Counts, Figures, Names, Out, print_table, provenance, run, write_report
from benchmarks.moe import routes
from benchmarks.moe.timing import Run, keep_freed_memory, relative_difference, table_row, take_turns
from mnmt_moe_ext import Layout, combine, dispatch, expert_capacity, reference, route

BINS, ROWS, EINSUM = "ours, bins", "ours, rows", "einsum"
INDEX_ADD, GATHER, COMPILED = "sorted, index_add", "sorted, gather", "sorted, gather, compiled"
TOLERANCES = {"float32": 1e-4, "bfloat16": 2e-2}
COPIED_BYTES = 2**28


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Tensors of a case, the same for every route: x and grad (tokens, d_model), logits (tokens, experts)."""

    x: Tensor
    logits: Tensor
    grad: Tensor

    @classmethod
    def draw(cls, tokens: int, num_experts: int, d_model: int, dtype: str, device: str) -> Inputs:
        """Draw all tensors from normal distributions; logits are float32."""
        generator = torch.Generator(device).manual_seed(1)
        normal = partial(torch.randn, generator=generator, device=device)
        kind = getattr(torch, dtype)
        x, grad = normal(tokens, d_model).to(kind), normal(tokens, d_model).to(kind)
        logits = normal(tokens, num_experts)
        return cls(x=x.requires_grad_(), logits=logits.requires_grad_(), grad=grad)


def main(
    *,
    device: Literal["cpu", "cuda"] = "cpu",
    dtypes: Names = ("float32", "bfloat16"),
    experts: Counts = (8, 64, 512),
    tokens: Counts = (4096,),
    d_model: int = 512,
    group_size: int = 512,
    bandwidth_tokens: int = 16384,
    seconds: float = 2.0,
    threads: int = 1,
    compiler: str = "inductor",
    out: Out = None,
) -> None:
    """Print a row for each case, pass and route, and one for each movement.

    Args:
        device: `cpu` or `cuda`.
        dtypes: Data types of tokens; logits are float32.
        experts: Numbers of experts.
        tokens: Numbers of tokens.
        d_model: Width of a token; bandwidths are of twice that.
        group_size: Tokens of a group at capacity factor 2.
        bandwidth_tokens: Tokens of the movements.
        seconds: Seconds for the rounds of a comparison, which are at least five.
        threads: Threads of torch.
        compiler: The backend of torch.compile.
        out: JSON file for the figures.
    """
    torch.set_num_threads(threads)
    keeps_memory = device == "cpu" and keep_freed_memory()
    rows: list[Figures] = []
    dropless: list[Figures] = []
    limited: list[Figures] = []
    for dtype, count, size in product(dtypes, tokens, experts):
        torch.compiler.reset()  # which keeps few shapes of a function
        inputs = Inputs.draw(count, size, d_model, dtype, device)
        case = {"dtype": dtype, "tokens": count, "experts": size}
        all_choices, some = without_drops(inputs, compiler), with_drops(inputs, count // group_size)
        for table, ways, group in ((dropless, all_choices, {}), (limited, some, {"group": group_size})):
            for name, times in compared(ways, inputs, dtype, seconds):
                contest = case | group | {"pass": name}
                rows += [contest | {"route": each} | time for each, time in times.items()]
                table.append(contest | table_row(times))
    print_table(dropless)
    print_table(limited)
    moved = [
        {"dtype": dtype, "experts": size, **row}
        for dtype, size in product(dtypes, experts[-2:])
        for row in bandwidths(Inputs.draw(bandwidth_tokens, size, 2 * d_model, dtype, device), seconds)
    ]
    print_table(moved)
    report = {
        "threads": threads,
        "keeps_freed_memory": keeps_memory,
        "operators": rows,
        "bandwidths": moved,
    }
    description = provenance("mnmt-moe-ext", "torch", gpu=device == "cuda")
    write_report(out, "gate, dispatch and combine", report, description)


Route = Callable[[Tensor, Tensor, Callable[..., Tensor]], Tensor]


def without_drops(inputs: Inputs, compiler: str) -> dict[str, Route]:
    """Return routes of all choices; bins have as many rows as the busiest expert takes."""
    return {
        ROWS: partial(routes.ours_in_rows, capacity=None),
        BINS: partial(routes.ours_in_bins, capacity=routes.largest_load(inputs.logits)),
        INDEX_ADD: routes.sorted_index_add,
        GATHER: routes.sorted_gather,
        COMPILED: routes.compiled(routes.sorted_gather, compiler),
    }


def with_drops(inputs: Inputs, num_groups: int) -> dict[str, Route]:
    """Return routes that drop the same choices, with GShard's capacity factor of 2."""
    tokens, num_experts = inputs.logits.shape
    capacity = expert_capacity(num_tokens=tokens // num_groups, num_experts=num_experts)
    return {
        name: partial(way, capacity=capacity, num_groups=num_groups)
        for name, way in ((BINS, routes.ours_in_bins), (ROWS, routes.ours_in_rows), (EINSUM, routes.einsum))
    }


def compared(
    ways: dict[str, Route], inputs: Inputs, dtype: str, seconds: float
) -> Iterator[tuple[str, dict[str, Figures]]]:
    """Yield the times of forward, and of forward with backward, after a check of all routes.

    Raises:
        RuntimeError: A route computes something else than the first.
    """
    factors = torch.linspace(1, 2, inputs.logits.shape[1], device=inputs.x.device).to(inputs.x.dtype)
    expected = None
    for name, way in ways.items():
        results = passed(way, inputs, partial(routes.scaled_experts, factors))
        expected = expected or results
        apart = max(map(relative_difference, results, expected))
        if apart > TOLERANCES[dtype]:
            raise RuntimeError(f"{name} differs from {next(iter(ways))} by {apart:.1e}")
    forward = {name: partial(forward_only, way, inputs) for name, way in ways.items()}
    both = {name: partial(passed, way, inputs, routes.identity_experts) for name, way in ways.items()}
    for name, runs in (("forward", forward), ("forward + backward", both)):
        yield name, take_turns(runs, device=inputs.x.device.type, seconds=seconds)


def forward_only(route: Route, inputs: Inputs) -> Tensor:
    """Return the output, without a graph for gradients."""
    with torch.no_grad():
        return route(inputs.x, inputs.logits, routes.identity_experts)


def passed(route: Route, inputs: Inputs, experts: Callable[..., Tensor]) -> tuple[Tensor, ...]:
    """Return the output and the gradients of tokens and logits."""
    output = route(inputs.x, inputs.logits, experts)
    return output.detach(), *torch.autograd.grad(output, (inputs.x, inputs.logits), inputs.grad)


def bandwidths(inputs: Inputs, seconds: float) -> Iterator[Figures]:
    """Yield GB/s of each movement in bins of the capacity, and its share of the copy's in the same rounds."""
    tokens, num_experts = inputs.logits.shape
    capacity = expert_capacity(num_tokens=tokens, num_experts=num_experts)
    routing, rows = route(inputs.logits.detach()[None], capacity=capacity)
    source = torch.zeros(COPIED_BYTES, dtype=torch.int8, device=inputs.x.device)
    runs: dict[str, tuple[Run, int]] = {
        "copy_": (partial(torch.empty_like(source).copy_, source), 2 * COPIED_BYTES)
    }
    for form, layout in (("bins", reference.capacity_layout(routing)), ("rows", rows)):
        for name, movement in movements(inputs, routing.weights, layout).items():
            runs[f"{name}, {form}"] = movement
    device = inputs.x.device.type
    times = take_turns({name: call for name, (call, _) in runs.items()}, device=device, seconds=seconds)
    rates = {name: runs[name][1] / time["median_ms"] / 1e6 for name, time in times.items()}
    for name, rate in rates.items():
        share = round(rate / rates["copy_"], 3)
        time = {key: times[name][key] for key in ("median_ms", "best_ms", "rounds")}
        yield {"movement": name, "gb_per_second": round(rate, 2), "share_of_copy": share, **time}


def movements(inputs: Inputs, weights: Tensor, layout: Layout) -> dict[str, tuple[Run, int]]:
    """Return dispatch, combine and their gradients, with the bytes that each reads and writes."""
    tokens, grad = inputs.x.detach()[None].requires_grad_(), inputs.grad[None]
    buffers = dispatch(tokens, layout)
    outputs, weights = buffers.detach().clone().requires_grad_(), weights.clone().requires_grad_()
    combined = combine(outputs, weights, layout)
    row = tokens.shape[-1] * tokens.element_size()
    read, out = int((layout.rows >= 0).sum()) * row, tokens.shape[1] * row
    every = buffers.numel() * buffers.element_size()
    again = partial(torch.autograd.grad, retain_graph=True)
    return {
        "dispatch": (partial(dispatch, tokens.detach(), layout), out + every),
        "combine": (partial(combine, outputs.detach(), weights.detach(), layout), read + out),
        "gradient of dispatch": (partial(again, buffers, tokens, outputs.detach()), read + out),
        "gradients of combine": (partial(again, combined, (outputs, weights), grad), out + read + every),
    }


if __name__ == "__main__":
    smoke = {"threads": 1, "experts": (8,), "tokens": (64,), "d_model": 32, "seconds": 0.02}
    run(main, smoke=smoke | {"bandwidth_tokens": 64, "group_size": 32, "compiler": "eager"})
