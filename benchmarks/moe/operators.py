"""The operators of mixtures of experts: gate, dispatch and combine, layers of them, and their bandwidth.

Claim: ours are faster than one-hot einsums and sorted pipelines, and dispatch and combine come near the
bandwidth of a plain copy. Peers: the einsums of Lepikhin et al. 2021 (GShard), sorting the choices by expert,
torch's grouped_mm, and on a GPU moe-ops and liger-kernel where they are installed. Cited in
docs/moe/measured.md.

Three parts are measured in one run on one device:

- operators: gate, dispatch and combine around experts that return their inputs, forward, and forward with
  backward. Against the einsums with the same drops, and against sorting the choices by expert, with index_add
  or a gather for the way back, without drops. A group is all tokens, or so many as `--group-sizes` says: the
  einsums' masks grow with it.
- layers: the same around ReLU experts, with torch.bmm, mnmt_model's experts or torch's grouped_mm.
- bandwidth: the bytes that dispatch, combine and their gradients must move, over the time, beside copy_.

Output and gradients of every way are first compared with ours. Then the ways take turns, and the times are
medians. On a GPU they are those of CUDA events from an idle device with a flushed cache, eager and as a CUDA
graph. The gate's projection is in none.

    python -m benchmarks.moe.operators --out benchmarks/results/moe/operators.json
    pip install moe-ops==0.1.0 liger-kernel==0.8.5
    python -m benchmarks.moe.operators --device cuda --all --out benchmarks/results/moe/operators_cuda.json

With `--out`, cases that the file has from the same machine and options are not run again. A case that fails,
or in which a way computes something else, does not stop the others; the exit status is then 1.
"""

from __future__ import annotations

import gc
import traceback
from itertools import product
from typing import Annotated, Literal

import torch
from cyclopts import Parameter

from benchmarks.measurement import Counts, Figures, Out, run
from benchmarks.moe.bandwidth import bandwidths
from benchmarks.moe.cases import Case, Inputs, make_inputs
from benchmarks.moe.comparisons import (
    Comparison,
    compare,
    seconds_per_flop,
    swiglu,
    with_drops,
    without_drops,
)
from benchmarks.moe.report import Report, print_bandwidths, print_claims, print_comparison
from benchmarks.moe.timing import keep_freed_memory

EXPERTS, TOKENS, WIDTHS = (8, 64, 512), (4096, 8192, 16384), (512, 1024)
DTYPES = ("float32", "bfloat16")
Part = Literal["operators", "layers", "bandwidth"]
PARTS: tuple[Part, ...] = ("operators", "layers", "bandwidth")


def main(
    *,
    device: Literal["cpu", "cuda"] = "cpu",
    dtype: Literal["float32", "bfloat16", "both"] = "both",
    parts: Annotated[tuple[Part, ...], Parameter(consume_multiple=True)] = PARTS,
    all_: bool = False,
    experts: Counts = (),
    tokens: Counts = (),
    d_model: Counts = (),
    group_sizes: Counts = (),
    d_ff: int | None = None,
    seconds: float = 2.0,
    threads: int = 2,
    memory_gib: float | None = None,
    keep_memory: bool = True,
    out: Out = None,
) -> None:
    """Print a table for each case.

    Args:
        device: `cpu` or `cuda`.
        dtype: Data type of tokens and weights; logits are float32.
        parts: Parts of the benchmark.
        all_: Whether to measure 8, 64 and 512 experts, 4,096 to 16,384 tokens, and d_model 512 and 1,024,
            instead of a few of these.
        experts: Numbers of experts, instead.
        tokens: Numbers of tokens, instead.
        d_model: Widths, instead.
        group_sizes: Tokens of a group, which must divide those of each case; 512 beside all tokens by
            default, at 64 experts. Where groups are smaller than all tokens, only drops are compared.
        d_ff: Hidden width of the experts; 2 d_model by default on a CPU and 4 d_model on a GPU.
        seconds: Seconds for the rounds of a comparison, which are at least three.
        threads: Threads of torch.
        memory_gib: Limit for the einsums' masks, or weights and gradients; by default 8, or half of a GPU's.
        keep_memory: Whether the C library keeps freed memory, on a CPU: results then start without page
            faults.
        out: JSON file for the figures, whose cases are not run again.
    """
    torch.set_num_threads(threads)
    keeps_memory = device == "cpu" and keep_memory and keep_freed_memory()
    if memory_gib is None:
        memory_gib = 8 if device == "cpu" else torch.cuda.mem_get_info()[1] / 2**31
    options = {
        "threads": threads,
        "seconds": seconds,
        "memory_gib": memory_gib,
        "keeps_freed_memory": keeps_memory,
    }
    report = Report(device=device, options=options, out=out)
    sizes = part_sizes(all_, experts, tokens, d_model, group_sizes)
    for kind in DTYPES if dtype == "both" else (dtype,):
        limits = {"memory_gib": memory_gib, "seconds_per_flop": seconds_per_flop(kind, device)}
        for part in parts:
            for size in sizes[part]:
                run_case(part, make_case(part, size, d_ff, kind, device), report, seconds, limits)
    print_claims(report.cases)
    if report.failed:
        raise SystemExit(f"failed: {'; '.join(report.failed)}")


Size = tuple[int, int, int, int | None]
Sizes = list[Size]


def make_case(part: str, size: Size, d_ff: int | None, dtype: str, device: str) -> Case:
    """Return the case of a part with experts, tokens, a width and a group size."""
    num_experts, num_tokens, width, group_size = size
    return Case(
        num_experts=num_experts,
        num_tokens=num_tokens,
        d_model=width,
        d_ff=(d_ff or width * (2 if device == "cpu" else 4)) if part == "layers" else None,
        group_size=group_size if group_size != num_tokens else None,
        dtype=dtype,
        device=device,
    )


def part_sizes(
    all_: bool,
    experts: tuple[int, ...],
    tokens: tuple[int, ...],
    d_model: tuple[int, ...],
    group_sizes: tuple[int, ...],
) -> dict[str, Sizes]:
    """Return experts, tokens, widths and group sizes for each part; the bandwidth knows no groups."""
    if all_ or experts or tokens or d_model or group_sizes:
        every = list(product(experts or EXPERTS, tokens or TOKENS, d_model or WIDTHS, group_sizes or (None,)))
        largest = product(experts or EXPERTS, [max(tokens or TOKENS)], d_model or WIDTHS, [None])
        return {"operators": every, "layers": every, "bandwidth": list(largest)}
    return {
        "operators": [
            (8, 4096, 512, None),
            (64, 4096, 512, None),
            (64, 4096, 512, 512),
            (512, 4096, 512, None),
            (64, 8192, 512, None),
        ],
        "layers": [(8, 4096, 512, None), (64, 4096, 512, None)],
        "bandwidth": [(64, 16384, 1024, None), (512, 16384, 1024, None)],
    }


def run_case(part: str, case: Case, report: Report, seconds: float, limits: dict[str, float]) -> None:
    """Measure a case, unless the file has it, and print it."""
    key = f"{part}: {case}"
    print(f"\n### {key}\n", flush=True)
    if key not in report.cases:
        gc.collect()
        try:
            figures = measure(part, case, seconds, limits)
        except Exception:
            traceback.print_exc()
            report.failed.append(key)
            return
        if figures is None:
            return
        report.add(key, figures)
    if part == "bandwidth":
        print_bandwidths(report.cases[key])
        return
    for name, comparison in report.cases[key].items():
        print_comparison(name, comparison)


def measure(part: str, case: Case, seconds: float, limits: dict[str, float]) -> Figures | None:
    """Return the figures of a case, or None if its weights do not fit."""
    weights = 2 * case.num_experts * case.d_model * (case.d_ff or 0) * case.element_size
    if (gib := 3 * weights / 2**30) > limits["memory_gib"]:
        print(f"not run: weights and gradients of {gib:.0f} GiB")
        return None
    inputs = make_inputs(case)
    if part == "bandwidth":
        return bandwidths(case, inputs, seconds=seconds)
    return {
        comparison.name: compare(comparison, case, seconds=seconds)
        for comparison in comparisons(case, inputs, limits)
    }


def comparisons(case: Case, inputs: Inputs, limits: dict[str, float]) -> list[Comparison]:
    """Return the comparisons of a case."""
    dropping = with_drops(case, inputs, **limits)
    if case.num_groups > 1:
        return [dropping]
    both = [without_drops(case, inputs), dropping]
    return [*both, swiglu(case, inputs)] if case.d_ff and case.device == "cuda" else both


if __name__ == "__main__":
    smoke = {"threads": 1, "experts": (8,), "tokens": (64,), "d_model": (32,), "seconds": 0.02}
    run(main, smoke=smoke)
