"""Calls of the gate, and the comparison of the emulated one with the plain-torch definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from mnmt_moe_ext import RandomKey, Routing, reference, route, uniform_choices

UNLIMITED = 2**31 - 1
POLICIES = ("always", "random")
RENORMALISE = ("before", "after", "never")
KEY = RandomKey.make(seed=(7 << 40) + 3, step=(1 << 33) + 5, layer=11)


def routing_of(logits: Tensor, padding_mask: Tensor | None = None, **options: Any) -> Routing:
    """What the compiled gate decides, without a layout; `reference.top_k_gate` is its definition."""
    return route(logits, padding_mask, **options)[0]


@dataclass(frozen=True)
class Call:
    logits: Tensor
    padding_mask: Tensor
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def policy(self) -> str:
        return self.options.get("second_expert_policy", "always")

    @property
    def renormalise(self) -> int:
        return RENORMALISE.index(self.options.get("renormalise", "never" if self.top_k == 1 else "before"))

    @property
    def top_k(self) -> int:
        return self.options["top_k"]


def make_call(shape: tuple[int, int, int], **options: Any) -> Call:
    generator = torch.Generator().manual_seed(sum(shape))
    logits = torch.randn(shape, generator=generator)
    if options.pop("ties", False):
        logits = logits.round()
    padding_mask = torch.rand(shape[:2], generator=generator) < options.pop("padding", 0.2)
    if options.pop("biased", False):
        options["bias"] = torch.randn(shape[2], generator=generator).round(decimals=1)
    if options.get("second_expert_policy", "always") != "always":
        options["random_key"] = KEY
        options["token_ids"] = torch.randint(2**62, shape[:2], generator=generator)
    return Call(logits, padding_mask, {"capacity": 4, "top_k": 2, **options})


def forced_call(shape: tuple[int, int, int], **options: Any) -> Call:
    """A call whose choices are given."""
    call = make_call(shape, **options)
    choices = uniform_choices(call.padding_mask, shape[2], step=3)
    return Call(call.logits, call.padding_mask, {**call.options, "choices": choices})


CALLS: dict[str, Call] = {
    **{
        f"{num_experts} experts": make_call(
            (2, 33, num_experts) if num_experts <= 100 else (1, 5, num_experts), ties=True
        )
        for num_experts in (2, 3, 31, 32, 33, 64, 100, 256, 257, 2048)
    },
    **{
        f"{top_k} choices, {renormalise}, {biased=}": make_call(
            (2, 41, 40), top_k=top_k, renormalise=renormalise, biased=biased, ties=True, capacity=6
        )
        for top_k in (1, 2, 3, 4, 5, 8)
        for renormalise in (RENORMALISE if top_k > 1 else ("never",))
        for biased in (False, True)
    },
    **{
        f"{policy}, {renormalise}, {num_experts} experts": make_call(
            (2, 70 if num_experts < 100 else 9, num_experts),
            second_expert_policy=policy,
            renormalise=renormalise,
            capacity=20,
            biased=renormalise == "after",
        )
        for policy in POLICIES
        for renormalise in RENORMALISE
        for num_experts in (2, 5, 300)
    },
    **{
        f"forced, {policy}": forced_call((2, 67, 6), second_expert_policy=policy, biased=True)
        for policy in POLICIES
    },
    # One strip, two, more strips than parts of the scan; then strips of 16 and of 32 tokens.
    **{
        f"strips of {shape}": make_call(shape, capacity=None, ties=True)
        for shape in ((1, 8, 2), (1, 9, 2), (1, 2113, 2), (130, 17, 2), (90, 65, 2))
    },
    **{f"few tokens, {shape}": make_call(shape, padding=1.0) for shape in ((0, 5, 4), (2, 0, 4), (3, 1, 4))},
    "one expert": make_call((2, 33, 1), top_k=1, biased=True),
    "as many choices as experts": make_call((1, 9, 8), top_k=8, capacity=5),
    "the most experts and choices": make_call((1, 3, 4096), ties=True, top_k=8),
}
"""Numbers of experts, choices and tokens at which kernels take another way, with every option."""


def run_gate(kernels: Any, call: Call, *, bin_size: int = 0) -> tuple[Routing, Tensor, tuple[Tensor, Tensor]]:
    """The routing, all choices, and the rows with `filled`, or with `ends` for a bin size of 0."""
    groups, tokens, num_experts = call.logits.shape
    key = call.options.get("random_key")
    capacity = call.options["capacity"]
    ranks = (groups, tokens, call.top_k)
    outputs = [
        *((ranks, torch.float32), ((groups, num_experts), torch.float32), ((groups, tokens), torch.float32)),
        *((ranks, torch.int32), (ranks, torch.int32), (ranks, torch.int32)),
        ((num_experts * (groups if bin_size else 1),), torch.int32),
        *(((groups, num_experts, call.top_k), torch.int32), (ranks, torch.int32), ((groups,), torch.int32)),
    ]
    results = kernels.run(
        "route",
        *(*call.logits.shape, call.top_k),
        *(call.logits, call.padding_mask, call.options.get("bias"), call.options.get("choices")),
        *(key and key.seed_and_step, call.options.get("token_ids")),
        *(UNLIMITED if capacity is None else capacity, bin_size, key.layer if key else 0),
        *(call.options.get("threshold", 0.5), call.renormalise),
        outputs=outputs,
    )
    weights, gate_means, log_sums, experts, slots, rows, counts, load, choices, real_tokens = results
    routing = Routing(
        experts=experts,
        slots=slots,
        weights=weights,
        gate_means=gate_means,
        log_sums=log_sums,
        load=load,
        real_tokens=real_tokens,
        capacity=capacity,
    )
    return routing, choices, (rows, counts)


def assert_same_routing(actual: Routing, expected: Routing) -> None:
    for name in ("experts", "slots", "load", "real_tokens"):
        assert torch.equal(getattr(actual, name), getattr(expected, name)), name
    for name in ("weights", "gate_means", "log_sums"):
        torch.testing.assert_close(getattr(actual, name), getattr(expected, name), rtol=1e-5, atol=1e-6)


def check_forward(kernels: Any, call: Call) -> None:
    """Compare the routing and its ragged layout; with a capacity, its layout in bins too."""
    actual, choices, (rows, ends) = run_gate(kernels, call)
    expected = reference.top_k_gate(call.logits, call.padding_mask, **call.options)
    assert_same_routing(actual, expected)
    assert torch.equal(choices[..., 0], actual.experts[..., 0])
    ragged = reference.ragged_layout(expected)
    assert torch.equal(rows, ragged.rows)
    assert torch.equal(ends, ragged.ends)
    if expected.capacity is None:
        return
    bins = reference.capacity_layout(expected, bin_size=expected.capacity + 3)
    _, _, (rows, filled) = run_gate(kernels, call, bin_size=bins.bin_size)
    assert torch.equal(rows, bins.rows)
    assert torch.equal(filled, bins.filled)


def check_backward(kernels: Any, call: Call, *, without: Sequence[str] = ()) -> None:
    routing, choices, _ = run_gate(kernels, call)
    generator = torch.Generator().manual_seed(0)
    grads = {
        name: None if name in without else torch.randn(getattr(routing, name).shape, generator=generator)
        for name in ("weights", "gate_means", "log_sums")
    }
    (actual,) = kernels.run(
        "route_backward",
        *(*call.logits.shape, call.top_k),
        *(*grads.values(), call.logits, choices, routing.slots, routing.log_sums, routing.real_tokens),
        call.renormalise,
        outputs=[(call.logits.shape, torch.float32)],
    )
    logits = call.logits.clone().requires_grad_()
    expected = reference.top_k_gate(logits, call.padding_mask, **call.options)
    scalar = sum((getattr(expected, name) * grad).sum() for name, grad in grads.items() if grad is not None)
    (gradient,) = torch.autograd.grad(scalar, logits)
    torch.testing.assert_close(actual, gradient, rtol=1e-4, atol=1e-6)
