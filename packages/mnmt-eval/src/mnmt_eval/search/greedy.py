"""Greedy search, and the loop that it shares with sampling: one target per row, token by token."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypotheses import Hypothesis, NBest, Targets
from mnmt_eval.search.next_tokens import add_start, best_tokens, constrain, on_device, read_prefix
from mnmt_eval.search.protocol import EOS, PAD, SearchModel, State

ChooseTokens = Callable[[Tensor, NDArray[np.int64], int], Tensor]
"""Next tokens `(n,)` from log-probabilities `(n, vocab_size)`, their rows `(n,)`, and the length so far."""


@torch.inference_mode()
def greedy_search(
    model: SearchModel[State], src: Tensor, config: SearchConfig, *, prefix: Tensor | None = None
) -> list[list[Hypothesis]]:
    """Take the most probable token at every step, until `</s>` or the maximal length.

    Args:
        model: The model that gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: The search options; `beam` and `early_stopping` do not count.
        prefix: `(batch, prefix_len)` tokens that targets are forced to begin with, see `beam_search`.

    Returns:
        One hypothesis of each source.

    Raises:
        EvalError: If `prefix` does not fit, or the model's log-probabilities are not finite.
    """
    prefix = add_start(src, prefix)
    if not len(src):
        return []
    state, limits = read_prefix(model, src, prefix), config.max_length.limits(src)
    targets = decode(model, state, prefix, limits, config, _most_probable)
    return NBest.rank(targets, config.length_penalty).hypotheses()


def decode(
    model: SearchModel[State],
    state: State,
    prefix: Tensor,
    limits: NDArray[np.int64],
    config: SearchConfig,
    choose: ChooseTokens,
) -> Targets:
    """Follow one target per row until `</s>` or the maximal length; finished rows leave the batch.

    Args:
        model: The model that gives the log-probabilities.
        state: The state before the last token of `prefix`.
        prefix: `(rows, n)` the start token and the forced prefix.
        limits: `(rows,)` maximal lengths.
        config: The search options; only `min_length` and `no_repeat_ngram` count.
        choose: The function that chooses every next token.

    Returns:
        `(rows, 1)` targets.
    """
    forced = prefix.cpu().numpy()
    tokens = np.full((len(forced), limits.max()), PAD)
    token_log_probs = np.zeros(tokens.shape)
    live, last = np.arange(len(forced)), prefix[:, -1]
    for length in range(tokens.shape[1]):
        log_probs, state = model.step(state, last)
        so_far = np.concatenate([forced[live], tokens[live, :length]], axis=1)
        last = choose(constrain(log_probs, so_far, length=length, config=config), live, length)
        new_tokens = last.cpu().numpy()
        tokens[live, length] = new_tokens
        token_log_probs[live, length] = log_probs.gather(1, last[:, None]).squeeze(1).cpu().numpy()
        (unfinished,) = ((new_tokens != EOS) & (limits[live] > length + 1)).nonzero()
        if len(unfinished) < len(live):
            rows = on_device(unfinished, prefix)
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
