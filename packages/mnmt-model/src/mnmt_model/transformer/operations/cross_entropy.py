"""Softmax and cross-entropy of a table of logits, with the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mnmt_model.transformer import native
from mnmt_model.transformer.products import Products, Shape


class TokenLosses(NamedTuple):
    """The losses of the tokens that a table of logits predicts."""

    nats: Tensor
    """`(rows,)` float32, -log p of each target."""
    objective: Tensor
    """Scalar, float32: the weighted sum of the tokens' objectives."""
    gradient: Tensor
    """`(rows, columns)`: the gradient of the objective by the logits."""


def cross_entropy_(
    logits: Tensor, targets: Tensor, weights: Tensor, *, smoothing: float, z_loss: float, products: Products
) -> TokenLosses:
    """Return the losses of tokens; the gradient may overwrite the logits.

    Args:
        logits: `(rows, columns)`, contiguous.
        targets: `(rows,)` int64, the columns of the tokens to predict.
        weights: `(rows,)` float32, the factor of each token's objective.
        smoothing: See `softmax_loss`.
        z_loss: See `softmax_loss`.
        products: The ways of operations.
    """
    is_native = products.is_native("cross_entropy", logits, inner=1, columns=logits.size(1))
    return (_native if is_native else _plain)(logits, targets, weights, smoothing, z_loss)


def cross_entropy_work(shape: Shape) -> Callable[[Products], object]:
    """Return what computes the losses of such a table of logits."""
    logits = torch.randn(shape.rows, shape.columns, dtype=getattr(torch, shape.dtype))
    targets = torch.randint(shape.columns, (shape.rows,))
    weights = torch.ones(shape.rows)
    return lambda products: cross_entropy_(
        logits, targets, weights, smoothing=0.0, z_loss=0.0, products=products
    )


def _native(logits: Tensor, targets: Tensor, weights: Tensor, smoothing: float, z_loss: float) -> TokenLosses:
    if len(targets) and int(targets.max()) >= logits.size(1):
        raise IndexError(f"token {int(targets.max())} is not in the vocabulary of {logits.size(1)}")
    nats, objective = torch.empty(len(logits)), torch.zeros(())
    tensors = (logits, targets.contiguous(), weights.float().contiguous(), nats, objective)
    native.run("cross_entropy", *tensors, *logits.shape, float(smoothing), float(z_loss))
    return TokenLosses(nats, objective, logits)


def _plain(logits: Tensor, targets: Tensor, weights: Tensor, smoothing: float, z_loss: float) -> TokenLosses:
    target_logits = logits.gather(1, targets[:, None]).squeeze(1).float()
    mean_logits = logits.mean(1, dtype=torch.float32) if smoothing else 0.0
    probabilities, normaliser = _softmax_(logits)
    loss = normaliser - (1 - smoothing) * target_logits + z_loss * normaliser.square()
    objective = (loss - smoothing * mean_logits) @ weights
    gradient = probabilities.mul_((weights * (1 + 2 * z_loss * normaliser))[:, None])
    if smoothing:
        gradient.sub_((weights * smoothing / gradient.size(1))[:, None])
    gradient.scatter_add_(1, targets[:, None], ((smoothing - 1) * weights)[:, None])
    return TokenLosses(normaliser - target_logits, objective, gradient)


def _softmax_(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return probabilities and the log-normaliser, both float32; overwrites float32 logits."""
    highest = logits.amax(1).float()
    if logits.dtype == torch.float32:
        probabilities = torch.softmax(logits, 1, out=logits)
    else:
        probabilities = logits.softmax(1, dtype=torch.float32)
    # The highest is at least 1 / vocab_size, so that its logarithm is exact where others underflow.
    return probabilities, highest - probabilities.amax(1).log()
