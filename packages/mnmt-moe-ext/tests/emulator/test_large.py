"""The last blocks of grids whose arrays have more elements than an int32 counts, on sparse files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch
from gate_calls import RENORMALISE
from torch import Tensor

from mnmt_moe_ext import reference

NewTensor = Callable[..., Tensor]


@pytest.fixture
def new(tmp_path: Path) -> NewTensor:
    """Return a function for tensors of zeros, which use memory only where they are written."""

    def make(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        file = tmp_path / "tensor"
        tensor = torch.from_file(str(file), shared=True, size=prod(shape), dtype=dtype)
        file.unlink()
        return tensor.view(shape)

    return make


@pytest.fixture
def last_blocks(kernels: Any) -> Iterator[Callable[[int], None]]:
    """Return a function that sets how many blocks run, the last of every grid."""
    yield lambda count: kernels.set_option("last_blocks", count)
    kernels.set_option("last_blocks", 2**63 - 1)


@pytest.mark.parametrize(("groups", "num_experts"), [(2**19 - 1, 4096), (2**28 - 1, 8)])
def test_gate(
    kernels: Any, new: NewTensor, last_blocks: Callable[[int], None], groups: int, num_experts: int
) -> None:
    """Groups of two tokens, the last of which chooses the last eight experts."""
    last_blocks(8)
    shape, ranks = (groups, 2, num_experts, 8), (groups, 2, 8)
    options = (9, 2, 0, 0.5, RENORMALISE.index("before"))
    logits, gate_means, weights, log_sums = (
        new(groups, *sizes, dtype=torch.float32)
        for sizes in ((2, num_experts), (1, num_experts), (2, 8), (2,))
    )
    experts, slots, rows, choices = (new(*ranks) for _ in range(4))
    filled, load, real_tokens = new(num_experts, groups), new(groups, num_experts, 8), new(groups)
    logits[-1, 1, -8:] = torch.arange(1.0, 9)
    kernels.call(
        "route",
        *(*shape, logits, new(groups, 2, dtype=torch.bool), None, None, None, None, *options),
        *(weights, gate_means, log_sums, experts, slots, rows, filled, load, choices, real_tokens),
    )
    leaf = logits[-1:].clone().requires_grad_()
    expected = reference.top_k_gate(leaf, capacity=9, top_k=8)
    assert torch.equal(experts[-1, 1], expected.experts[0, 1])
    assert torch.equal(slots[-1, 1], expected.slots[0, 1])
    assert torch.equal(load[-1, -8:], expected.load[0, -8:])
    assert torch.equal(filled[-8:, -1], expected.load[0, -8:].sum(1).int())
    torch.testing.assert_close(weights[-1, 1], expected.weights[0, 1])
    torch.testing.assert_close(gate_means[-1, :, -8:], expected.gate_means[:, -8:])

    last_blocks(1)
    grad_weights, grad_logits = new(*ranks, dtype=torch.float32), new(*logits.shape, dtype=torch.float32)
    grad_weights[-1, 1] = torch.arange(8.0)
    kernels.call(
        "route_backward",
        *(*shape, grad_weights, None, None, logits, choices, slots, log_sums, real_tokens, options[-1]),
        grad_logits,
    )
    (gradient,) = torch.autograd.grad(expected.weights, leaf, grad_weights[-1:])
    torch.testing.assert_close(grad_logits[-1, 1], gradient[0, 1])


@pytest.mark.parametrize(("num_tokens", "d", "top_k"), [(2**15 + 1, 2**16 + 1, 2), (2**28 + 1, 1, 8)])
def test_rows(
    kernels: Any, new: NewTensor, last_blocks: Callable[[int], None], num_tokens: int, d: int, top_k: int
) -> None:
    """The last token, alone in its block, has the first rows and the last but one. The last row is empty."""
    bin_size = num_tokens + 1 if d > 1 else top_k + 1
    shape, bins = (num_tokens, d, top_k, False), (torch.tensor([bin_size - 1]).int(), 1, bin_size)
    tokens, combined = (new(num_tokens, d, dtype=torch.float32) for _ in range(2))
    buffers, grad_buffers = (new(bin_size, d, dtype=torch.float32) for _ in range(2))
    weights, grad_weights = (new(num_tokens, top_k, dtype=torch.float32) for _ in range(2))
    rows = new(num_tokens, top_k)
    chosen = rows[-1] = torch.tensor([*range(top_k - 1), bin_size - 2])
    weights[-1] = torch.arange(1.0, 1 + top_k)
    tokens[-1] = torch.randn(d)
    buffers[-1] = grad_buffers[-1] = 1

    last_blocks(bin_size // 256 + 1)
    kernels.call("dispatch", *shape, tokens, rows, *bins, buffers)
    assert (buffers[chosen] == tokens[-1]).all()
    assert (buffers[-1] == 0).all()

    last_blocks(1)
    kernels.call("combine", *shape, buffers, weights, rows, bin_size, combined)
    torch.testing.assert_close(combined[-1], weights[-1].sum() * tokens[-1])

    last_blocks(bin_size // 256 + 1)
    gradients = (grad_buffers, grad_weights)
    kernels.call("combine_backward", *shape, combined, buffers, weights, rows, *bins, *gradients)
    torch.testing.assert_close(grad_buffers[chosen], weights[-1, :, None] * combined[-1])
    torch.testing.assert_close(grad_weights[-1], (combined[-1] @ tokens[-1]).expand(top_k))
    assert (grad_buffers[-1] == 0).all()
