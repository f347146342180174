"""Greedy search, and the loop that it shares with sampling: one target per row, token by token."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypotheses import Hypothesis, NBest, Targets
from mnmt_eval.search.next_tokens import best_tokens, on_device
from mnmt_eval.search.protocol import EOS, PAD, SearchModel, State

ChooseTokens = Callable[[Tensor, NDArray[np.int64], int], Tensor]
"""Next tokens `(n,)` from log-probabilities `(n, vocab_size)`, their rows `(n,)`, and the length so far."""


@torch.inference_mode()
def greedy_search(model: SearchModel[State], src: Tensor, config: SearchConfig) -> list[list[Hypothesis]]:
    """Take the most probable token at every step, until `</s>` or the maximal length.

    Args:
        model: The model that gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: The search options; only `max_length` and `length_penalty` count.

    Returns:
        One hypothesis of each source.

    Raises:
        EvalError: If the model's log-probabilities are not finite.
    """
    if not len(src):
        return []
    state, start = model.encode(src, src == PAD), src.new_full((len(src),), PAD)
    targets = decode(model, state, start, config.max_length.limits(src), _most_probable)
    return NBest.rank(targets, config.length_penalty).hypotheses()


def decode(
    model: SearchModel[State], state: State, last: Tensor, limits: NDArray[np.int64], choose: ChooseTokens
) -> Targets:
    """Follow one target per row until `</s>` or the maximal length; finished rows leave the batch.

    Args:
        model: The model that gives the log-probabilities.
        state: The state before the first token.
        last: `(rows,)` the token that every target starts from.
        limits: `(rows,)` maximal lengths.
        choose: The function that chooses every next token.

    Returns:
        `(rows, 1)` targets.
    """
    tokens = np.full((len(limits), limits.max()), PAD)
    token_log_probs = np.zeros(tokens.shape)
    live = np.arange(len(limits))
    for length in range(tokens.shape[1]):
        log_probs, state = model.step(state, last)
        last = choose(log_probs, live, length)
        new_tokens = last.cpu().numpy()
        tokens[live, length] = new_tokens
        token_log_probs[live, length] = log_probs.gather(1, last[:, None]).squeeze(1).cpu().numpy()
        (unfinished,) = ((new_tokens != EOS) & (limits[live] > length + 1)).nonzero()
        if len(unfinished) < len(live):
            rows = on_device(unfinished, last)
            live, last, state = live[unfinished], last[rows], state.select(rows)
        if not len(live):
            break
    return Targets(
        tokens=tokens[:, None],
        token_log_probs=token_log_probs[:, None],
        # A running sum, so that the width of the batch does not change the rounding.
        log_probs=token_log_probs.cumsum(axis=1)[:, -1:],
    )


def _most_probable(log_probs: Tensor, rows: NDArray[np.int64], length: int) -> Tensor:
    return on_device(best_tokens(log_probs, 1)[1][:, 0], log_probs)
