"""The most probable next tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.protocol import PAD

_FIRST = PAD + 1
_BLOCK = 128
"""Tokens of a vocabulary whose maximum is taken at once."""


def best_tokens(log_probs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` most probable next tokens of every row, best first; never `PAD`.

    Args:
        log_probs: `(rows, vocab_size)`.
        count: How many; all of them if there are fewer.

    Returns:
        Their log-probabilities, float64, and the tokens, both `(rows, count)`.

    Raises:
        EvalError: If a row's best log-probability is not a finite number.
    """
    values, tokens = _largest(log_probs[:, _FIRST:], count)
    check_finite(values[:, 0])
    return values.double(), tokens + _FIRST


def check_finite(best: Tensor) -> None:
    """Refuse the best log-probabilities of a model that has diverged; NaN counts as best."""
    if not best.isfinite().all():
        raise EvalError(
            "the model's log-probabilities are not finite: it has diverged; train it at a lower rate."
        )


def _largest(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest of each row and their places, as `topk`, which takes several times as long.

    They lie in the blocks of the `count` largest maxima, or behind the last whole block.
    """
    num_blocks = x.size(1) // _BLOCK
    if num_blocks <= count:
        values, places = x.topk(min(count, x.size(1)))
        return values, places
    blocks, rest = x[:, : num_blocks * _BLOCK], x[:, num_blocks * _BLOCK :]
    blocks = blocks.view(len(x), num_blocks, _BLOCK)
    chosen = blocks.amax(dim=2).topk(count).indices
    within = torch.arange(_BLOCK, device=x.device)
    places = (chosen[..., None] * _BLOCK + within).flatten(1)
    behind = torch.arange(num_blocks * _BLOCK, x.size(1), device=x.device).expand_as(rest)
    rows = torch.arange(len(x), device=x.device)[:, None]
    values, order = torch.cat([blocks[rows, chosen].flatten(1), rest], dim=1).topk(count)
    return values, torch.cat([places, behind], dim=1).gather(1, order)
