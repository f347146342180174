"""Greedy search."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_eval.protocol import EOS, PAD, State, TranslationModel
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypothesis import Hypothesis, hypothesis
from mnmt_eval.search.log_probs import best_tokens


@torch.inference_mode()
def greedy_search(model: TranslationModel[State], src: Tensor, config: SearchConfig) -> list[Hypothesis]:
    """Take the most probable token at every step, until `</s>` or the maximal length.

    Finished sentences leave the batch.

    Args:
        model: what gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: its `max_length` and `length_penalty` count; its `beam` does not.

    Returns:
        A hypothesis a source.

    Raises:
        EvalError: if the model's log-probabilities are not finite.
    """
    limits = config.max_length.of(src)
    longest = int(limits.max()) if len(limits) else 0
    tokens = src.new_full((len(src), longest), PAD)
    scores = torch.zeros(len(src), dtype=torch.float64, device=src.device)
    live = torch.arange(len(src), device=src.device)
    last = src.new_full((len(src),), PAD)
    state = model.encode(src, src == PAD)
    for position in range(longest):
        log_probs, state = model.step(state, last)
        best, last = (found.squeeze(1) for found in best_tokens(log_probs, 1))
        tokens[live, position] = last
        scores[live] += best
        going = ((last != EOS) & (limits[live] > position + 1)).nonzero().squeeze(1)
        if len(going) < len(live):
            live, last, state = live[going], last[going], state.select(going)
        if not len(live):
            break
    normalised = scores / config.length_penalty.of((tokens != PAD).sum(dim=1))
    rows = zip(tokens.tolist(), scores.tolist(), normalised.tolist(), strict=True)
    return [hypothesis(*row) for row in rows]
