"""Checks that ways compute the same, and times them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from torch import Tensor

from benchmarks.moe.cases import Case
from benchmarks.moe.comparisons import Comparison, Way
from benchmarks.moe.timing import Run, captured, reason, take_turns

TOLERANCES = {"float32": 1e-4, "bfloat16": 2e-2}


def compared(comparison: Comparison, case: Case, *, seconds: float) -> dict[str, Any]:
    """Differences from ours, and times of each pass; for a way that cannot run, the reason.

    Raises:
        RuntimeError: A way computes something else.
    """
    ways = {name: way for name, way in comparison.ways.items() if isinstance(way, Way)}
    not_run = {name: way for name, way in comparison.ways.items() if isinstance(way, str)}
    differences, failed = checked(ways, case)
    not_run |= failed
    ways = {name: way for name, way in ways.items() if name not in failed}
    passes: dict[str, dict[str, Run]] = {
        "forward": {name: way.forward_alone for name, way in ways.items()},
        "forward + backward": {name: way.forward_and_backward for name, way in ways.items()},
    }
    times: dict[str, dict[str, dict[str, float]]] = {}
    not_captured: dict[str, str] = {}
    for name, runs in passes.items():
        times[name] = timed(runs, case, seconds)
        if case.device == "cuda":
            graphs = {way: captured(run) for way, run in runs.items()}
            not_captured |= {way: graph for way, graph in graphs.items() if isinstance(graph, str)}
            runs = {way: graph for way, graph in graphs.items() if not isinstance(graph, str)}
            times[f"{name}, CUDA graph"] = timed(runs, case, seconds)
    return {
        "rows_in_bins": comparison.rows,
        "differences": differences,
        "times": times,
        "not_run": not_run,
        "not_captured": not_captured,
    }


def timed(runs: dict[str, Run], case: Case, seconds: float) -> dict[str, dict[str, float]]:
    """Times of a pass."""
    times = take_turns(runs, device=case.device, seconds=seconds)
    return {name: asdict(each) for name, each in times.items()}


def checked(ways: dict[str, Way], case: Case) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Differences of each way's output and gradients from the first's; why others cannot run.

    Raises:
        RuntimeError: One is too large.
    """
    (ours, first), *others = ways.items()
    expected = first.output_and_gradients()
    differences: dict[str, list[float]] = {}
    failed: dict[str, str] = {}
    for name, way in others:
        if way.checked is None:
            continue
        try:
            found = way.output_and_gradients()
        except Exception as error:
            if name.startswith("ours"):
                raise
            failed[name] = reason(error)
            continue
        output, *gradients = map(difference, found, expected)
        differences[name] = [output, max(gradients)]
        if not (output <= TOLERANCES[case.dtype] and max(gradients) <= gradient_tolerance(case)):
            raise RuntimeError(
                f"{name} differs from {ours}: output {output:.1e}, gradients {max(gradients):.1e}"
            )
    return differences, failed


def gradient_tolerance(case: Case) -> float:
    """Some of millions of hidden units are so close to 0 that rounding decides whether their ReLU is open."""
    if case.dtype == "bfloat16":
        return 5e-2
    return 5e-3 if case.d_ff else TOLERANCES[case.dtype]


def difference(found: Tensor, expected: Tensor) -> float:
    """The norm of the difference over the norm; one of 4,096 tokens at a wrong expert makes 0.01."""
    expected = expected.float()
    return float((found.float() - expected).norm() / expected.norm())
