"""Greedy search, and the loop that it shares with sampling: one target per row, token by token."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypotheses import Hypothesis, NBest, Targets
from mnmt_eval.search.next_tokens import add_start, best_tokens, constrain, read_prefix
from mnmt_eval.search.protocol import EOS, PAD, SearchModel, State

ChooseTokens = Callable[[Tensor, Tensor, int], Tensor]
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
    limits: Tensor,
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
    tokens = prefix.new_full((len(prefix), int(limits.max())), PAD)
    token_log_probs = torch.zeros(tokens.shape, dtype=torch.float64, device=prefix.device)
    live, last = torch.arange(len(prefix), device=prefix.device), prefix[:, -1]
    for length in range(tokens.size(1)):
        log_probs, state = model.step(state, last)
        so_far = torch.cat([prefix[live], tokens[live, :length]], dim=1)
        last = choose(constrain(log_probs, so_far, length=length, config=config), live, length)
        tokens[live, length] = last
        token_log_probs[live, length] = log_probs.gather(1, last[:, None]).squeeze(1).double()
        unfinished = ((last != EOS) & (limits[live] > length + 1)).nonzero().squeeze(1)
        if len(unfinished) < len(live):
            live, last, state = live[unfinished], last[unfinished], state.select(unfinished)
        if not len(live):
            break
    return Targets(
        tokens=tokens[:, None],
        token_log_probs=token_log_probs[:, None],
        # A running sum, so that the width of the batch does not change the rounding.
        log_probs=token_log_probs.cumsum(dim=1)[:, -1:],
    )


def _most_probable(log_probs: Tensor, rows: Tensor, length: int) -> Tensor:
    return best_tokens(log_probs, 1)[1].squeeze(1)
