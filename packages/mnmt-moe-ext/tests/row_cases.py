"""Routings without a gate, and calls on them, for the tests of layouts, `dispatch` and `combine`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from hypothesis import strategies as st
from torch import Tensor

from mnmt_moe_ext import Layout, Routing, combine, dispatch, reference
from mnmt_moe_ext.rows import buffer_shape

Experts = npt.NDArray[np.int32]


def make_routing(experts: Experts, *, num_experts: int, capacity: int | None, seed: int = 0) -> Routing:
    """The routing of (groups, tokens, top_k) experts, -1 for none, with random weights."""
    groups, tokens, top_k = experts.shape
    slots = np.full_like(experts, -1)
    load = np.zeros((groups, num_experts, top_k), np.int32)
    for group in range(groups):
        taken = [0] * num_experts
        for rank in range(top_k):
            for token, expert in enumerate(experts[group, :, rank]):
                if expert >= 0:
                    load[group, expert, rank] += 1
                    if capacity is None or taken[expert] < capacity:
                        slots[group, token, rank] = taken[expert]
                        taken[expert] += 1
    weights = torch.rand(experts.shape, generator=torch.Generator().manual_seed(seed))
    return Routing(
        experts=torch.from_numpy(experts),
        slots=torch.from_numpy(slots),
        weights=weights * torch.from_numpy(slots >= 0),
        gate_means=torch.full((groups, num_experts), 1 / num_experts),
        log_sums=torch.zeros(groups, tokens),
        load=torch.from_numpy(load),
        real_tokens=torch.from_numpy((experts[..., 0] >= 0).sum(axis=1, dtype=np.int32)),
        capacity=capacity,
    )


def random_experts(kind: str, groups: int, tokens: int, num_experts: int, top_k: int, seed: int) -> Experts:
    """Different experts for each token, except for padding; sometimes without some that are not the first."""
    generator = np.random.default_rng(seed)
    preference = generator.random((groups, tokens, num_experts))
    if kind == "one expert":
        preference[..., -1] = 1
    experts = (-preference).argsort(axis=-1)[..., :top_k].astype(np.int32)
    experts[..., 1:][generator.random((groups, tokens, top_k - 1)) < 0.2] = -1
    experts[generator.random((groups, tokens)) < {"padding": 1.0, "some padding": 0.4}.get(kind, 0.0)] = -1
    return experts


def random_routing(
    *,
    groups: int,
    tokens: int,
    num_experts: int,
    capacity: int | None,
    top_k: int = 2,
    kind: str = "some padding",
    seed: int = 0,
) -> Routing:
    experts = random_experts(kind, groups, tokens, num_experts, top_k, seed)
    return make_routing(experts, num_experts=num_experts, capacity=capacity, seed=seed)


@dataclass(frozen=True)
class RowCase:
    routing: Routing
    bin_size: int | None
    """None for a ragged layout."""
    d_model: int
    dtype: torch.dtype
    seed: int

    def layout(self) -> Layout:
        if self.bin_size is None:
            return reference.ragged_layout(self.routing)
        return reference.capacity_layout(self.routing, bin_size=self.bin_size)

    def normal(self, *shape: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        return torch.randn(*shape, generator=generator).to(self.dtype).requires_grad_()

    def tokens(self) -> Tensor:
        return self.normal(*self.routing.slots.shape[:2], self.d_model)

    def weights(self) -> Tensor:
        dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
        return self.routing.weights.to(dtype).requires_grad_()


@st.composite
def row_cases(draw: st.DrawFn) -> RowCase:
    """Layouts of both kinds, for few and for many experts, with drops, padding and rows of odd length."""
    num_experts = draw(st.sampled_from([2, 3, 8, 64, 512]))
    capacity = draw(st.sampled_from([1, 2] if num_experts > 64 else [1, 2, 4, 30]))
    ragged = draw(st.booleans())
    seed = draw(st.integers(0, 2**31))
    routing = random_routing(
        groups=draw(st.integers(1, 3)),
        tokens=draw(st.integers(1, 23)),
        num_experts=num_experts,
        capacity=None if ragged and draw(st.booleans()) else capacity,
        top_k=draw(st.integers(1, min(num_experts, 8))),
        kind=draw(st.sampled_from(["random", "one expert", "some padding", "padding"])),
        seed=seed,
    )
    return RowCase(
        routing=routing,
        bin_size=None if ragged else capacity + draw(st.sampled_from([0, 1, 3])),
        d_model=draw(st.sampled_from([1, 7, 16, 33] if num_experts > 8 else [1, 7, 16, 32, 33, 64, 513])),
        dtype=draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float64])),
        seed=seed,
    )


RELATIVE_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float64: 1e-12}


def assert_close(actual: Tensor, expected: Tensor, *, terms: int = 1) -> None:
    """Close for the dtype that both have, as a sum of that many terms of order one."""
    tolerance = RELATIVE_TOLERANCE[actual.dtype]
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance * terms**0.5)


def operator_results(layout: Layout, weights: Tensor, dtype: torch.dtype, d_model: int) -> list[Tensor]:
    """Everything that the operators compute, from the same random tokens and outputs."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(*weights.shape[:2], d_model, generator=generator).to(dtype).requires_grad_()
    outputs = torch.randn(*buffer_shape(layout), d_model, generator=generator).to(dtype).requires_grad_()
    weights = weights.detach().to(torch.promote_types(dtype, torch.float32)).requires_grad_()
    buffers = dispatch(tokens, layout)
    combined = combine(outputs, weights, layout)
    (grad_tokens,) = torch.autograd.grad(buffers, tokens, outputs.detach())
    grads = torch.autograd.grad(combined, (outputs, weights), tokens.detach())
    return [buffers, combined, grad_tokens, *grads]
