"""Greedy search."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_eval.protocol import State, TranslationModel
from mnmt_eval.search.beginning import begin, beginnings
from mnmt_eval.search.best_tokens import best_tokens
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypothesis import Hypothesis
from mnmt_eval.search.left_to_right import left_to_right
from mnmt_eval.search.n_best import ranked


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
