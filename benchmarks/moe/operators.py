"""Mixture-of-experts operators: ours against one-hot einsums, sorted pipelines and plain copies of memory.

Three parts, all in one run on one device:

- operators: gate, dispatch and combine around experts that return what they get, forward, and forward with
  backward. Against the einsums of Lepikhin et al. 2021 (GShard) with the same drops, and against sorting the
  choices by expert, with index_add or a gather for the way back, without drops. A group is all tokens.
- layers: the same around ReLU experts, with torch.bmm, mnmt_model's products or torch's grouped_mm.
- bandwidth: the bytes dispatch, combine and their gradients must move, over the time, beside copy_.

Every way's output and gradients are first compared with ours; then the ways take turns, and the times are
medians. On a GPU they are those of CUDA events from an idle device with a flushed cache, eager and as a CUDA
graph, and moe-ops and liger-kernel are peers too where they are installed. The gate's projection is in none.

    pip install packages/mnmt-model && pip install --no-build-isolation packages/mnmt-moe-ext
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
from pathlib import Path
from typing import Any, Literal

import cyclopts
import torch

from benchmarks.moe.bandwidth import bandwidths
from benchmarks.moe.cases import Case, Inputs, make_inputs
from benchmarks.moe.claims import print_claims
from benchmarks.moe.comparing import compared
from benchmarks.moe.comparisons import Comparison, seconds_per_flop, swiglu, with_drops, without_drops
from benchmarks.moe.report import Report, print_bandwidths, print_comparison
from benchmarks.moe.timing import keep_freed_memory

EXPERTS, TOKENS, WIDTHS = (8, 64, 512), (4096, 8192, 16384), (512, 1024)
DTYPES = ("float32", "bfloat16")


def main(
    *,
    device: Literal["cpu", "cuda"] = "cpu",
    dtype: Literal["float32", "bfloat16", "both"] = "both",
    parts: tuple[Literal["operators", "layers", "bandwidth"], ...] = ("operators", "layers", "bandwidth"),
    all_: bool = False,
    experts: tuple[int, ...] = (),
    tokens: tuple[int, ...] = (),
    d_model: tuple[int, ...] = (),
    d_ff: int | None = None,
    seconds: float = 2.0,
    threads: int = 2,
    memory_gib: float | None = None,
    keep_memory: bool = True,
    out: Path | None = None,
) -> None:
    """Print a table for each case.

    Args:
        device: To run on.
        dtype: Of tokens and weights; logits are float32.
        parts: Of the benchmark.
        all_: 8, 64 and 512 experts, 4,096 to 16,384 tokens, d_model 512 and 1,024, instead of a few of these.
        experts: Numbers of them, instead.
        tokens: Numbers of them, instead.
        d_model: Widths, instead.
        d_ff: Hidden width of the experts; 2 d_model by default on a CPU and 4 d_model on a GPU.
        seconds: For the rounds of a comparison, at least three of which are made.
        threads: Of torch.
        memory_gib: For the einsums' masks, or weights and gradients; by default 8, or half of a GPU's.
        keep_memory: On a CPU, have the C library keep freed memory: results then start without page faults.
        out: File for the figures, of which the cases it already has are not run again.
    """
    torch.set_num_threads(threads)
    kept = device == "cpu" and keep_memory and keep_freed_memory()
    if memory_gib is None:
        memory_gib = 8 if device == "cpu" else torch.cuda.mem_get_info()[1] / 2**31
    options = {"threads": threads, "seconds": seconds, "memory_gib": memory_gib, "keeps_freed_memory": kept}
    report = Report(device=device, options=options, out=out)
    sizes = chosen_sizes(all_, experts, tokens, d_model)
    for kind in DTYPES if dtype == "both" else (dtype,):
        limits = {"memory_gib": memory_gib, "seconds_per_flop": seconds_per_flop(kind, device)}
        for part in parts:
            for num_experts, num_tokens, width in sizes[part]:
                hidden = (d_ff or width * (2 if device == "cpu" else 4)) if part == "layers" else None
                case = Case(
                    num_experts=num_experts,
                    num_tokens=num_tokens,
                    d_model=width,
                    d_ff=hidden,
                    dtype=kind,
                    device=device,
                )
                run_case(part, case, report, seconds, limits)
    print_claims(report.found)
    if report.failed:
        raise SystemExit(f"failed: {'; '.join(report.failed)}")


Sizes = list[tuple[int, int, int]]


def chosen_sizes(
    all_: bool, experts: tuple[int, ...], tokens: tuple[int, ...], d_model: tuple[int, ...]
) -> dict[str, Sizes]:
    """Experts, tokens and widths for each part."""
    if all_ or experts or tokens or d_model:
        every = list(product(experts or EXPERTS, tokens or TOKENS, d_model or WIDTHS))
        most = max(tokens or TOKENS)
        return {"operators": every, "layers": every, "bandwidth": [size for size in every if size[1] == most]}
    return {
        "operators": [(8, 4096, 512), (64, 4096, 512), (512, 4096, 512), (64, 8192, 512)],
        "layers": [(8, 4096, 512), (64, 4096, 512)],
        "bandwidth": [(64, 16384, 1024), (512, 16384, 1024)],
    }


def run_case(part: str, case: Case, report: Report, seconds: float, limits: dict[str, float]) -> None:
    """Measures and prints a case, or prints what the file has of it."""
    key = f"{part}: {case}"
    print(f"\n### {key}\n", flush=True)
    if key not in report.found:
        gc.collect()
        try:
            found = measured(part, case, seconds, limits)
        except Exception:
            traceback.print_exc()
            report.failed.append(key)
            return
        if found is None:
            return
        report.add(key, found)
    if part == "bandwidth":
        print_bandwidths(report.found[key])
        return
    for name, comparison in report.found[key].items():
        print_comparison(name, comparison)


def measured(part: str, case: Case, seconds: float, limits: dict[str, float]) -> dict[str, Any] | None:
    """Figures of a case; none if its weights do not fit."""
    weights = 2 * case.num_experts * case.d_model * (case.d_ff or 0) * case.element_size
    if (gib := 3 * weights / 2**30) > limits["memory_gib"]:
        print(f"not run: weights and gradients of {gib:.0f} GiB")
        return None
    inputs = make_inputs(case)
    if part == "bandwidth":
        return bandwidths(case, inputs, seconds=seconds)
    return {
        comparison.name: compared(comparison, case, seconds=seconds)
        for comparison in comparisons(case, inputs, limits)
    }


def comparisons(case: Case, inputs: Inputs, limits: dict[str, float]) -> list[Comparison]:
    """Of a case."""
    found = [without_drops(case, inputs), with_drops(case, inputs, **limits)]
    return [*found, swiglu(case, inputs)] if case.d_ff and case.device == "cuda" else found


if __name__ == "__main__":
    cyclopts.run(main)
