"""The losses of a batch: softmax and cross-entropy in chunks of tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._compile import _disable_dynamo
from torch.autograd.function import once_differentiable

from mnmt_model.transformer.experts.routes import Balance

CHUNK_LOGITS = 2**22
"""Logits of a chunk on a CPU: 16 MiB in float32, which fit into caches, and malloc reuses."""

CUDA_CHUNK_LOGITS = 2**28
"""Logits of a chunk on a GPU, which is fastest at large products."""

MIN_ROWS = 256
"""Fewest tokens of a chunk, since each chunk adds to the whole gradient of the weights."""


class Losses(NamedTuple):
    """Losses of a batch, in nats."""

    objective: Tensor
    """Scalar: the training objective, summed over all predicted tokens."""
    pair_nats: Tensor
    """`(batch,)` -log p(target | source) of each pair, `</s>` included; not differentiated."""
    balance: Balance | None = None
    """Balance of experts, in training or if requested; None for a dense model."""


@_disable_dynamo  # as torch.compiler.disable, but importing the compiler only when it is called
def softmax_loss(
    states: Tensor,
    weight: Tensor,
    targets: Tensor,
    token_weights: Tensor,
    *,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    compiled: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the summed objective and each token's -log p.

    With logits s = weight · state and Z = Σ exp s, a token's objective is

        (1 - ε)(-log p_target) + ε mean_v(-log p_v) + z_loss · (log Z)²

    Gradients are computed with the loss, so that logits are computed once, and never stored for all tokens.

    Args:
        states: `(num_tokens, d_model)`.
        weight: `(vocab_size, d_model)`.
        targets: `(num_tokens,)` int64, the tokens to predict.
        token_weights: `(num_tokens,)` float32, the weight of each token's objective.
        label_smoothing: ε, the share spread over the vocabulary.
        z_loss: The factor of the squared log-normaliser.
        compiled: Whether to compile the cross-entropy on a GPU.

    Returns:
        The scalar Σ weight · objective, and `(num_tokens,)` -log p_target in nats, not differentiated.
    """
    if not torch.is_grad_enabled():
        # A Function does not know that gradients are disabled, and would compute them.
        states, weight = states.detach(), weight.detach()
    objective, nats = _SoftmaxLoss.apply(  # type: ignore[no-untyped-call]
        states, weight, targets, token_weights, label_smoothing, z_loss, compiled
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
        compiled: bool,
    ) -> tuple[Tensor, Tensor]:
        cross_entropy = _compiled_cross_entropy() if compiled and not states.is_cpu else _cross_entropy_
        differentiated = any(ctx.needs_input_grad[:2])
        matrix = weight.to(states.dtype)
        grad_states = torch.empty_like(states) if differentiated else None
        grad_weight = None if len(states) else torch.zeros_like(weight, dtype=torch.float32)
        nats = torch.empty(len(targets), device=states.device, dtype=torch.float32)
        objective = torch.zeros((), device=states.device)
        for rows in _chunks(states, len(weight)):
            losses = cross_entropy(
                states[rows] @ matrix.T, targets[rows], token_weights[rows], smoothing, z_loss
            )
            nats[rows] = losses.nats
            objective += losses.objective
            if grad_states is not None:
                grad_states[rows] = losses.gradient @ matrix
                part = (losses.gradient.T @ states[rows]).float()
                grad_weight = part if grad_weight is None else grad_weight.add_(part)
        ctx.save_for_backward(grad_states, grad_weight)
        ctx.mark_non_differentiable(nats)
        return objective, nats

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight = ctx.saved_tensors
        scale = gradients[0]
        return grad_states * scale.to(grad_states.dtype), grad_weight * scale, *(None,) * 5


def chunk_rows(vocab_size: int, *, on_gpu: bool) -> int:
    """Return the number of tokens of a chunk."""
    return max(MIN_ROWS, (CUDA_CHUNK_LOGITS if on_gpu else CHUNK_LOGITS) // vocab_size)


def _chunks(states: Tensor, vocab_size: int) -> list[slice]:
    size = chunk_rows(vocab_size, on_gpu=not states.is_cpu)
    return [slice(start, start + size) for start in range(0, len(states), size)]


class TokenLosses(NamedTuple):
    """The losses of the tokens of a chunk."""

    nats: Tensor
    """`(rows,)` float32, -log p of each target."""
    objective: Tensor
    """Scalar, float32: the weighted sum of the tokens' objectives."""
    gradient: Tensor
    """`(rows, vocab_size)`, in the precision of the logits: the gradient of the objective by the logits."""


def _cross_entropy_(
    logits: Tensor, targets: Tensor, weights: Tensor, smoothing: float, z_loss: float
) -> TokenLosses:
    """Return the losses of tokens; the gradient may overwrite the logits."""
    target_logits = logits.gather(1, targets[:, None]).squeeze(1).float()
    mean_logits = logits.mean(1, dtype=torch.float32) if smoothing else 0.0
    probabilities, normaliser = _softmax_(logits)
    loss = normaliser - (1 - smoothing) * target_logits + z_loss * normaliser.square()
    objective = (loss - smoothing * mean_logits) @ weights
    # ∂s_v = weight · ((1 + 2 z log Z) p_v - ε / V - (1 - ε) [v = target])
    gradient = probabilities.mul_((weights * (1 + 2 * z_loss * normaliser))[:, None])
    if smoothing:
        gradient.sub_((weights * smoothing / gradient.size(1))[:, None])
    gradient.scatter_add_(1, targets[:, None], ((smoothing - 1) * weights)[:, None])
    return TokenLosses(normaliser - target_logits, objective, gradient.to(logits.dtype))


def _softmax_(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return probabilities and the log-normaliser, both float32; overwrites float32 logits."""
    highest = logits.amax(1).float()
    if logits.dtype == torch.float32:
        probabilities = torch.softmax(logits, 1, out=logits)
    else:
        probabilities = logits.softmax(1, dtype=torch.float32)
    # The highest probability is at least 1 / vocab_size: its logarithm is exact where others underflow.
    return probabilities, highest - probabilities.amax(1).log()


@cache
def _compiled_cross_entropy() -> Callable[..., TokenLosses]:
    return torch.compile(_fusible_cross_entropy)


def _fusible_cross_entropy(
    logits: Tensor, targets: Tensor, weights: Tensor, smoothing: float, z_loss: float
) -> TokenLosses:
    """Return the same as `_cross_entropy_`; compiled, it reads the logits twice and writes the gradient once.

    Element by element it would need more memory than `_cross_entropy_`.
    """
    log_probs = logits.log_softmax(1, dtype=torch.float32)
    nats = -log_probs.gather(1, targets[:, None]).squeeze(1)
    target_logits = logits.gather(1, targets[:, None]).squeeze(1).float()
    normaliser = target_logits + nats
    mean_logits = logits.mean(1, dtype=torch.float32) if smoothing else 0.0
    loss = normaliser - (1 - smoothing) * target_logits + z_loss * normaliser.square()
    objective = ((loss - smoothing * mean_logits) * weights).sum()
    is_target = torch.arange(logits.size(1), device=logits.device) == targets[:, None]
    spread = smoothing / logits.size(1) + (1 - smoothing) * is_target
    factor = weights * (1 + 2 * z_loss * normaliser)
    gradient = factor[:, None] * log_probs.exp() - weights[:, None] * spread
    return TokenLosses(nats, objective, gradient.to(logits.dtype))
