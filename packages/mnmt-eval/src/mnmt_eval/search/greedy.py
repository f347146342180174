"""Following one target a row from left to right, by whatever chooses its next token."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypotheses import Hypothesis, Targets, ranked
from mnmt_eval.search.next_tokens import begin, beginnings, best_tokens, constrain
from mnmt_eval.search.protocol import EOS, PAD, State, TranslationModel

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""Next tokens `(n,)` from log-probabilities `(n, vocab_size)`, their rows `(n,)`, and the length so far."""


def left_to_right(
    model: TranslationModel[State],
    state: State,
    begun: Tensor,
    limits: Tensor,
    config: SearchConfig,
    choose: Choose,
) -> Targets:
    """Let `choose` choose every token, until `</s>` or the maximal length; finished rows leave the batch.

    Args:
        model: What gives the log-probabilities.
        state: Before the last token of `begun`.
        begun: `(rows, n)` what targets begin with.
        limits: `(rows,)` maximal lengths.
        config: Of which `min_length` and `no_repeat_ngram` count.
        choose: What chooses.

    Returns:
        `(rows, 1)` targets.
    """
    tokens = begun.new_full((len(begun), int(limits.max())), PAD)
    token_log_probs = torch.zeros(tokens.shape, dtype=torch.float64, device=begun.device)
    live, last = torch.arange(len(begun), device=begun.device), begun[:, -1]
    for length in range(tokens.size(1)):
        log_probs, state = model.step(state, last)
        so_far = torch.cat([begun[live], tokens[live, :length]], dim=1)
        last = choose(constrain(log_probs, so_far, length=length, config=config), live, length)
        tokens[live, length] = last
        token_log_probs[live, length] = log_probs.gather(1, last[:, None]).squeeze(1).double()
        going = ((last != EOS) & (limits[live] > length + 1)).nonzero().squeeze(1)
        if len(going) < len(live):
            live, last, state = live[going], last[going], state.select(going)
        if not len(live):
            break
    return Targets(
        tokens=tokens[:, None],
        token_log_probs=token_log_probs[:, None],
        # One after the other, so that the width of the batch does not change how they round.
        log_probs=token_log_probs.cumsum(dim=1)[:, -1:],
    )


@torch.inference_mode()
def greedy_search(
    model: TranslationModel[State], src: Tensor, config: SearchConfig, *, prefix: Tensor | None = None
) -> list[list[Hypothesis]]:
    """Take the most probable token at every step, until `</s>` or the maximal length.

    Args:
        model: What gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: How to search; its `beam` and `early_stopping` do not count.
        prefix: `(batch, prefix_len)` tokens that targets are forced to begin with, see `beam_search`.

    Returns:
        One hypothesis of each source.

    Raises:
        EvalError: If `prefix` does not fit, or the model's log-probabilities are not finite.
    """
    begun = beginnings(src, prefix)
    if not len(src):
        return []
    state, limits = begin(model, src, begun), config.max_length.of(src)
    targets = left_to_right(model, state, begun, limits, config, _most_probable)
    return ranked(targets, config.length_penalty).hypotheses()


def _most_probable(log_probs: Tensor, rows: Tensor, length: int) -> Tensor:
    return best_tokens(log_probs, 1)[1].squeeze(1)
