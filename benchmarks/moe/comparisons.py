"""Ways that compute the same function, checked against each other and timed.

Without drops every token reaches both its experts; ours in bins then has as many rows for each expert as the
busiest one takes. With the capacity of GShard (factor 2) all drop the same choices.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.moe import routes
from benchmarks.moe.cases import Case, Inputs
from benchmarks.moe.timing import Run, capture, reason, take_turns
from mnmt_moe_ext import expert_capacity, top_k_gate

BINS, ROWS, PRODUCTS = "ours, bins", "ours, rows", "ours, rows, experts of mnmt-model"
EINSUM, INDEX_ADD, GATHER = "einsum", "sorted, index_add", "sorted, gather"
MOE_OPS, LIGER = "moe-ops", "liger-kernel"


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to compute a function."""

    forward: Callable[[], Tensor]
    differentiated: tuple[Tensor, ...]
    grad: Tensor
    checked: Callable[[], Tensor] | None
    """The function that is compared with the other ways; None if it computes only a part."""

    def forward_alone(self) -> Tensor:
        """Return the output, without a graph for gradients."""
        with torch.no_grad():
            return self.forward()

    def forward_and_backward(self) -> tuple[Tensor, ...]:
        """Return the gradients, new each time; none accumulates."""
        return torch.autograd.grad(self.forward(), self.differentiated, self.grad)

    def output_and_gradients(self) -> tuple[Tensor, ...]:
        """Return the output and all gradients, to be compared."""
        assert self.checked is not None
        output = self.checked()
        return output.detach(), *torch.autograd.grad(output, self.differentiated, self.grad)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Ways that compute the same function."""

    name: str
    ways: dict[str, Way | str]
    """{name: way}, ours first; for a way that cannot run, the reason."""

    rows: int
    """Rows of the buffers in bins."""


def on_inputs(
    inputs: Inputs, route: Callable[..., Tensor], use: Callable[..., Tensor], **options: int | None
) -> Way:
    """Return a way with experts that use the weights; without weights, experts that differ check it."""
    through = partial(route, inputs.x, inputs.logits, **options)
    if inputs.wi is None:
        factors = torch.linspace(1, 2, inputs.logits.shape[-1], device=inputs.x.device).to(inputs.x.dtype)
        forward, checked = partial(through, use), partial(through, partial(routes.scaled_experts, factors))
    else:
        forward = checked = partial(through, partial(use, inputs.wi, inputs.wo))
    return Way(
        forward=forward,
        checked=checked,
        differentiated=inputs.differentiated,
        grad=inputs.grad,
    )


def without_drops(case: Case, inputs: Inputs) -> Comparison:
    """Compare ours in rows and in bins, the sorted pipelines, and moe-ops."""
    layer = case.d_ff is not None
    on_bins, on_rows = (
        (routes.bmm_experts, routes.grouped_experts) if layer else (routes.identity_experts,) * 2
    )
    capacity = largest_load(inputs.logits)
    way = partial(on_inputs, inputs)
    ways: dict[str, Way | str] = {
        ROWS: way(routes.ours_in_rows, on_rows, capacity=None),
        BINS: way(routes.ours_in_bins, on_bins, capacity=capacity),
        INDEX_ADD: way(routes.sorted_index_add, on_rows),
        GATHER: way(routes.sorted_gather, on_rows),
    }
    if layer and case.device == "cpu":
        ways[PRODUCTS] = way(routes.ours_in_rows, routes.mnmt_model_experts, capacity=capacity)
    if case.device == "cuda":
        on_theirs = routes.moe_ops_experts if layer else routes.identity_experts
        ways[MOE_OPS] = way(routes.moe_ops_route, on_theirs)
        if not layer:
            ways[LIGER] = "has no dispatch or combine apart from its layer"
        elif case.dtype == "float32":
            ways[MOE_OPS] = "multiplies in bfloat16 and float16 only"
    return Comparison(name="without drops", ways=ways, rows=case.num_experts * capacity)


def with_drops(case: Case, inputs: Inputs, *, memory_gib: float, seconds_per_flop: float) -> Comparison:
    """Compare ours in bins, ours in rows where there are no experts, and the one-hot einsums."""
    layer = case.d_ff is not None
    group_size = case.num_tokens // case.num_groups
    capacity = expert_capacity(num_tokens=group_size, num_experts=case.num_experts)
    rows = case.num_groups * capacity
    on_bins = routes.bmm_experts if layer else routes.identity_experts
    way = partial(on_inputs, inputs, num_groups=case.num_groups)
    ways: dict[str, Way | str] = {BINS: way(routes.ours_in_bins, on_bins, capacity=capacity)}
    if layer and case.device == "cpu":
        ways[PRODUCTS] = way(routes.ours_in_rows, routes.mnmt_model_experts, capacity=capacity)
    if not layer:
        ways[ROWS] = way(routes.ours_in_rows, routes.identity_experts, capacity=capacity)
    reason_not_run = reason_einsum_is_too_large(case, capacity, memory_gib, seconds_per_flop)
    ways[EINSUM] = reason_not_run or way(routes.einsum, on_bins, capacity=capacity)
    if layer:
        ways["torch.bmm of the experts alone"] = experts_alone(case, inputs, rows)
    return Comparison(name="capacity factor 2", ways=ways, rows=case.num_experts * rows)


def swiglu(case: Case, inputs: Inputs) -> Comparison:
    """Compare ours with liger-kernel's layer, whose experts have three matrices of the same hidden width."""
    assert inputs.wi is not None
    assert inputs.wo is not None
    gate = inputs.wi.detach().transpose(1, 2)
    gate_and_up = torch.cat([gate, gate.flip(1)], dim=1).requires_grad_()
    down = inputs.wo.detach().transpose(1, 2).contiguous().requires_grad_()
    x, logits = inputs.x, inputs.logits
    use = partial(routes.swiglu_experts, gate_and_up, down)
    forwards: dict[str, Callable[[], Tensor]] = {
        ROWS: partial(routes.ours_in_rows, x, logits, use, capacity=None),
        INDEX_ADD: partial(routes.sorted_index_add, x, logits, use),
        LIGER: partial(routes.liger_layer, gate_and_up, down, x, logits),
    }
    differentiated = (x, logits, gate_and_up, down)
    return Comparison(
        name="SwiGLU experts, without drops",
        ways={
            name: Way(forward=forward, checked=forward, differentiated=differentiated, grad=inputs.grad)
            for name, forward in forwards.items()
        },
        rows=2 * case.num_tokens,
    )


def experts_alone(case: Case, inputs: Inputs, rows: int) -> Way:
    """Return the matrix products that every way with a capacity needs."""
    assert inputs.wi is not None
    assert inputs.wo is not None
    buffers = inputs.x.new_zeros(case.num_experts, rows, case.d_model).normal_().requires_grad_()
    return Way(
        forward=partial(routes.bmm_experts, inputs.wi, inputs.wo, buffers),
        checked=None,
        differentiated=(buffers, inputs.wi, inputs.wo),
        grad=torch.ones_like(buffers),
    )


def largest_load(logits: Tensor) -> int:
    """Return the tokens of the busiest expert, rounded up to a multiple of four."""
    with torch.no_grad():
        load = top_k_gate(logits[None], capacity=None).load
    return -(-int(load.sum(dim=-1).max()) // 4) * 4


def reason_einsum_is_too_large(case: Case, capacity: int, memory_gib: float, seconds_per_flop: float) -> str:
    """Return why the einsums are not run, if they take more than a minute or the memory; empty otherwise.

    At once there are about four tensors of tokens · experts · capacity, two of them float32. Both masks are
    multiplied with d_model columns once, and again for each gradient: six products in all.
    """
    elements = case.num_tokens * case.num_experts * capacity
    gib = elements * 2 * (4 + case.element_size) / 2**30
    seconds = 6 * 2 * elements * case.d_model * seconds_per_flop
    if gib <= memory_gib and seconds <= 60:
        return ""
    return f"masks of {elements:.2e} elements: about {gib:.0f} GiB and {seconds:.0f} s a pass"


def seconds_per_flop(dtype: str, device: str) -> float:
    """Return the seconds per FLOP of a product of square matrices."""
    matrix = torch.randn(2048, 2048, device=device).to(getattr(torch, dtype))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        (matrix @ matrix).sum().item()
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:]) / (2 * 2048**3)


TOLERANCES = {"float32": 1e-4, "bfloat16": 2e-2}


def compare(comparison: Comparison, case: Case, *, seconds: float) -> dict[str, Any]:
    """Return the differences from ours, and the times of each pass; for a way that cannot run, the reason.

    Raises:
        RuntimeError: A way computes something else.
    """
    ways = {name: way for name, way in comparison.ways.items() if isinstance(way, Way)}
    not_run = {name: way for name, way in comparison.ways.items() if isinstance(way, str)}
    differences, failed = check(ways, case)
    not_run |= failed
    ways = {name: way for name, way in ways.items() if name not in failed}
    passes: dict[str, dict[str, Run]] = {
        "forward": {name: way.forward_alone for name, way in ways.items()},
        "forward + backward": {name: way.forward_and_backward for name, way in ways.items()},
    }
    times: dict[str, dict[str, dict[str, float]]] = {}
    not_captured: dict[str, str] = {}
    for name, runs in passes.items():
        times[name] = time_pass(runs, case, seconds)
        if case.device == "cuda":
            graphs = {way: capture(run) for way, run in runs.items()}
            not_captured |= {way: graph for way, graph in graphs.items() if isinstance(graph, str)}
            runs = {way: graph for way, graph in graphs.items() if not isinstance(graph, str)}
            times[f"{name}, CUDA graph"] = time_pass(runs, case, seconds)
    return {
        "rows_in_bins": comparison.rows,
        "differences": differences,
        "times": times,
        "not_run": not_run,
        "not_captured": not_captured,
    }


def time_pass(runs: dict[str, Run], case: Case, seconds: float) -> dict[str, dict[str, float]]:
    """Return the times of a pass."""
    times = take_turns(runs, device=case.device, seconds=seconds)
    return {name: asdict(each) for name, each in times.items()}


def check(ways: dict[str, Way], case: Case) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Return the differences of output and gradients from the first way, and why others cannot run.

    Raises:
        RuntimeError: A difference is too large.
    """
    (ours, first), *others = ways.items()
    expected = first.output_and_gradients()
    differences: dict[str, list[float]] = {}
    failed: dict[str, str] = {}
    for name, way in others:
        if way.checked is None:
            continue
        try:
            results = way.output_and_gradients()
        except Exception as error:
            if name.startswith("ours"):
                raise
            failed[name] = reason(error)
            continue
        output, *gradients = map(difference, results, expected)
        differences[name] = [output, max(gradients)]
        if not (output <= TOLERANCES[case.dtype] and max(gradients) <= gradient_tolerance(case)):
            raise RuntimeError(
                f"{name} differs from {ours}: output {output:.1e}, gradients {max(gradients):.1e}"
            )
    return differences, failed


def gradient_tolerance(case: Case) -> float:
    """Return the tolerance of gradients.

    Of millions of hidden units some are so close to 0 that rounding decides whether their ReLU is open.
    """
    if case.dtype == "bfloat16":
        return 5e-2
    return 5e-3 if case.d_ff else TOLERANCES[case.dtype]


def difference(actual: Tensor, expected: Tensor) -> float:
    """Return the norm of the difference over the norm; one of 4,096 tokens at a wrong expert makes 0.01."""
    expected = expected.float()
    return float((actual.float() - expected).norm() / expected.norm())
