"""The most probable next tokens."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.search.protocol import PAD

_FIRST = PAD + 1


def on_device(tokens: NDArray[np.int64], like: Tensor) -> Tensor:
    """Return tokens, or places, on the device of `like`."""
    return torch.from_numpy(tokens).to(like.device)


def best_tokens(log_probs: Tensor, count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the `count` most probable next tokens of every row, best first, never `PAD`.

    Args:
        log_probs: `(rows, vocab_size)`.
        count: The number of tokens; all of them are returned if there are fewer.

    Returns:
        Their log-probabilities and the tokens, both `(rows, count)`.

    Raises:
        EvalError: If a row's best log-probability is not a finite number.
    """
    candidates = log_probs[:, _FIRST:]
    values, places = (x.cpu().numpy() for x in candidates.topk(min(count, candidates.size(1))))
    check_finite(values[:, 0])
    return values.astype(np.float64), places + _FIRST


def check_finite(best: NDArray[np.floating]) -> None:
    """Refuse the log-probabilities of a model that has diverged; `topk` puts NaN first."""
    if not np.isfinite(best).all():
        raise EvalError(
            "the model's log-probabilities are not finite: it has diverged; train it at a lower rate."
        )
