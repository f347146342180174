"""Which ways compute the same function and so are compared with each other.

Without drops every token reaches both its experts; ours in bins then has as many rows for each expert as the
busiest one takes. With the capacity of GShard (factor 2) the same choices are dropped by all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from benchmarks.moe import experts, gpu_peers, routes
from benchmarks.moe.cases import Case, Inputs
from mnmt_moe_ext import expert_capacity, top2_gate

BINS, ROWS, PRODUCTS = "ours, bins", "ours, rows", "ours, bins, products of mnmt-model"
EINSUM, INDEX_ADD, GATHER = "einsum", "sorted, index_add", "sorted, gather"
MOE_OPS, LIGER = "moe-ops", "liger-kernel"


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to compute a function."""

    forward: Callable[[], Tensor]
    differentiated: tuple[Tensor, ...]
    grad: Tensor
    checked: Callable[[], Tensor] | None
    """What is compared with the other ways; None if it computes a part of the function only."""

    def forward_alone(self) -> Tensor:
        """The output, without a record for gradients."""
        with torch.no_grad():
            return self.forward()

    def forward_and_backward(self) -> tuple[Tensor, ...]:
        """The gradients, new each time; none is added up."""
        return torch.autograd.grad(self.forward(), self.differentiated, self.grad)

    def output_and_gradients(self) -> tuple[Tensor, ...]:
        """All that can be compared."""
        assert self.checked is not None
        output = self.checked()
        return output.detach(), *torch.autograd.grad(output, self.differentiated, self.grad)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Ways that compute the same."""

    name: str
    ways: dict[str, Way | str]
    """By name, the first ours; for one that cannot run, the reason."""

    rows: int
    """Of the buffers in bins."""


def on_inputs(
    inputs: Inputs, route: Callable[..., Tensor], use: Callable[..., Tensor], **options: int | None
) -> Way:
    """A way with experts that use the weights; without weights it is checked with experts that differ."""
    through = partial(route, inputs.x, inputs.logits, **options)
    if inputs.wi is None:
        factors = torch.linspace(1, 2, inputs.logits.shape[-1], device=inputs.x.device).to(inputs.x.dtype)
        forward, checked = partial(through, use), partial(through, partial(experts.scaled, factors))
    else:
        forward = checked = partial(through, partial(use, inputs.wi, inputs.wo))
    return Way(
        forward=forward,
        checked=checked,
        differentiated=inputs.differentiated,
        grad=inputs.grad,
    )


def without_drops(case: Case, inputs: Inputs) -> Comparison:
    """Ours in rows and in bins, the sorted pipelines, moe-ops."""
    layer = case.d_ff is not None
    on_bins, on_rows = (experts.bmm, experts.grouped_mm) if layer else (experts.identity,) * 2
    capacity = largest_load(inputs.logits)
    way = partial(on_inputs, inputs)
    ways: dict[str, Way | str] = {
        ROWS: way(routes.ours_in_rows, on_rows, capacity=None),
        BINS: way(routes.ours_in_bins, on_bins, capacity=capacity),
        INDEX_ADD: way(routes.sorted_index_add, on_rows),
        GATHER: way(routes.sorted_gather, on_rows),
    }
    if layer and case.device == "cpu":
        ways[PRODUCTS] = way(routes.ours_in_bins, experts.mnmt_model_products, capacity=capacity)
    if case.device == "cuda":
        on_theirs = gpu_peers.moe_ops_experts if layer else experts.identity
        ways[MOE_OPS] = way(gpu_peers.moe_ops_route, on_theirs)
        if not layer:
            ways[LIGER] = "has no dispatch or combine apart from its layer"
        elif case.dtype == "float32":
            ways[MOE_OPS] = "multiplies in bfloat16 and float16 only"
    return Comparison(name="without drops", ways=ways, rows=case.num_experts * capacity)


def with_drops(case: Case, inputs: Inputs, *, memory_gib: float, seconds_per_flop: float) -> Comparison:
    """Ours in bins, in rows where there are no experts, and the one-hot einsums."""
    layer = case.d_ff is not None
    capacity = expert_capacity(num_tokens=case.num_tokens, num_experts=case.num_experts)
    on_bins = experts.bmm if layer else experts.identity
    way = partial(on_inputs, inputs)
    ways: dict[str, Way | str] = {BINS: way(routes.ours_in_bins, on_bins, capacity=capacity)}
    if layer and case.device == "cpu":
        ways[PRODUCTS] = way(routes.ours_in_bins, experts.mnmt_model_products, capacity=capacity)
    if not layer:
        ways[ROWS] = way(routes.ours_in_rows, experts.identity, capacity=capacity)
    refused = einsum_is_too_large(case, capacity, memory_gib, seconds_per_flop)
    ways[EINSUM] = refused or way(routes.einsum, on_bins, capacity=capacity)
    if layer:
        ways["torch.bmm of the experts alone"] = experts_alone(case, inputs, capacity)
    return Comparison(name="capacity factor 2", ways=ways, rows=case.num_experts * capacity)


def swiglu(case: Case, inputs: Inputs) -> Comparison:
    """Ours and liger-kernel's layer, which has no other experts: three matrices of the same hidden width."""
    assert inputs.wi is not None
    assert inputs.wo is not None
    gate = inputs.wi.detach().transpose(1, 2)
    gate_and_up = torch.cat([gate, gate.flip(1)], dim=1).requires_grad_()
    down = inputs.wo.detach().transpose(1, 2).contiguous().requires_grad_()
    x, logits = inputs.x, inputs.logits
    use = partial(experts.grouped_swiglu, gate_and_up, down)
    forwards: dict[str, Callable[[], Tensor]] = {
        ROWS: partial(routes.ours_in_rows, x, logits, use, capacity=None),
        INDEX_ADD: partial(routes.sorted_index_add, x, logits, use),
        LIGER: partial(gpu_peers.liger_layer, gate_and_up, down, x, logits),
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


def experts_alone(case: Case, inputs: Inputs, capacity: int) -> Way:
    """The products that every way with a capacity needs."""
    assert inputs.wi is not None
    assert inputs.wo is not None
    buffers = inputs.x.new_zeros(case.num_experts, capacity, case.d_model).normal_().requires_grad_()
    return Way(
        forward=partial(experts.bmm, inputs.wi, inputs.wo, buffers),
        checked=None,
        differentiated=(buffers, inputs.wi, inputs.wo),
        grad=torch.ones_like(buffers),
    )


def largest_load(logits: Tensor) -> int:
    """Tokens of the busiest expert, rounded up to a multiple of four."""
    with torch.no_grad():
        load = top2_gate(logits[None], capacity=None).load
    return -(-int(load.sum(dim=-1).max()) // 4) * 4


def einsum_is_too_large(case: Case, capacity: int, memory_gib: float, seconds_per_flop: float) -> str:
    """Why the einsums are not run, if they would take more than a minute or the memory; empty otherwise.

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
    """Of a product of square matrices; the first of three does not count."""
    matrix = torch.randn(2048, 2048, device=device).to(getattr(torch, dtype))
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        (matrix @ matrix).sum().item()
        taken.append(time.perf_counter() - start)
    return min(taken[1:]) / (2 * 2048**3)
