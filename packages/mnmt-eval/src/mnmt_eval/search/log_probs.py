"""The most probable next tokens."""

from __future__ import annotations

from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.protocol import PAD

_FIRST = PAD + 1


def best_tokens(log_probs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` most probable next tokens of every row, best first; never `PAD`.

    Args:
        log_probs: `(rows, vocab_size)`.
        count: how many; all of them if there are fewer.

    Returns:
        Their log-probabilities, float64, and the tokens, both `(rows, count)`.

    Raises:
        EvalError: if a row's best log-probability is not a finite number.
    """
    without_pad = log_probs[:, _FIRST:]
    values, tokens = without_pad.topk(min(count, without_pad.size(1)))
    # NaN sorts before every number.
    if not values[:, 0].isfinite().all():
        raise EvalError(
            "the model's log-probabilities are not finite: it has diverged; train it at a lower rate."
        )
    return values.double(), tokens + _FIRST
