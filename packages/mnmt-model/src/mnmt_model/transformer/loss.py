"""The losses of a batch: softmax and cross-entropy, a chunk of tokens at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnmt_model.transformer.experts.routes import Balance
from mnmt_model.transformer.operations import cross_entropy_
from mnmt_model.transformer.products import TORCH, Products

CHUNK_LOGITS = 2**22
"""Logits in memory at a time on a CPU: 16 MiB in float32, which caches hold and malloc does not return."""

CUDA_CHUNK_LOGITS = 2**28
"""Logits in memory at a time on a GPU, which is fastest at large products."""

MIN_ROWS = 256
"""Tokens of a chunk at least, since each chunk adds to the whole gradient of the weights."""


class Losses(NamedTuple):
    """Losses of a batch, in nats."""

    objective: Tensor
    """Scalar: what training minimises, summed over all predicted tokens."""
    pair_nats: Tensor
    """`(batch,)` -log p(target | source) of each pair, `</s>` included; not differentiated."""
    balance: Balance | None = None
    """How evenly experts were used, of a model that has any: in training, or where that is asked for."""


def softmax_loss(
    states: Tensor,
    weight: Tensor,
    targets: Tensor,
    token_weights: Tensor,
    *,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    products: Products = TORCH,
) -> tuple[Tensor, Tensor]:
    """Return the summed objective and each token's -log p.

    With logits s = weight · state and Z = Σ exp s, a token's objective is

        (1 - ε)(-log p_target) + ε mean_v(-log p_v) + z_loss · (log Z)²

    Gradients are computed along with the loss. So logits are computed once, and are never all in memory.

    Args:
        states: `(num_tokens, d_model)`.
        weight: `(vocab_size, d_model)`.
        targets: `(num_tokens,)` int64, the tokens to predict.
        token_weights: `(num_tokens,)` float32, the factor of each token's objective.
        label_smoothing: ε, the share that is spread over the whole vocabulary.
        z_loss: The factor of the squared log-normaliser.
        products: The ways of the matrix products.

    Returns:
        The scalar Σ weight · objective, and `(num_tokens,)` -log p_target in nats, not differentiated.
    """
    if not torch.is_grad_enabled():
        # A Function cannot see that nobody asks for the gradients that it would compute.
        states, weight = states.detach(), weight.detach()
    objective, nats = _SoftmaxLoss.apply(  # type: ignore[no-untyped-call]
        states, weight, targets, token_weights, label_smoothing, z_loss, products
    )
    return objective, nats


class _SoftmaxLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        targets: Tensor,
        token_weights: Tensor,
        smoothing: float,
        z_loss: float,
        products: Products,
    ) -> tuple[Tensor, Tensor]:
        differentiated = any(ctx.needs_input_grad[:2])
        matrix = weight.to(states.dtype)
        grad_states = torch.empty_like(states) if differentiated else None
        grad_weight = None if len(states) else torch.zeros_like(weight, dtype=torch.float32)
        nats = torch.empty(len(targets), device=states.device, dtype=torch.float32)
        objective = torch.zeros((), device=states.device)
        for rows in _chunks(states, len(weight)):
            losses = cross_entropy_(
                products.forward(states[rows], matrix),
                targets[rows],
                token_weights[rows],
                smoothing=smoothing,
                z_loss=z_loss,
                products=products,
            )
            nats[rows] = losses.nats
            objective += losses.objective
            if grad_states is not None:
                gradient = losses.gradient.to(states.dtype)
                grad_states[rows] = products.grad_input(gradient, matrix)
                part = products.grad_weight(gradient, states[rows]).float()
                grad_weight = part if grad_weight is None else grad_weight.add_(part)
        ctx.save_for_backward(grad_states, grad_weight)
        ctx.mark_non_differentiable(nats)
        return objective, nats

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight = ctx.saved_tensors
        scale = gradients[0]
        return grad_states * scale.to(grad_states.dtype), grad_weight * scale, None, None, None, None, None


def chunk_rows(vocab_size: int, *, on_gpu: bool) -> int:
    """Return the number of tokens whose logits are in memory at a time."""
    return max(MIN_ROWS, (CUDA_CHUNK_LOGITS if on_gpu else CHUNK_LOGITS) // vocab_size)


def _chunks(states: Tensor, vocab_size: int) -> list[slice]:
    size = chunk_rows(vocab_size, on_gpu=states.is_cuda)
    return [slice(start, start + size) for start in range(0, len(states), size)]
