"""The best translation by whichever search the configuration names."""

from __future__ import annotations

from torch import Tensor

from mnmt_eval.protocol import State, TranslationModel
from mnmt_eval.search.beam import beam_search
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.greedy import greedy_search
from mnmt_eval.search.hypothesis import Hypothesis


def search(model: TranslationModel[State], src: Tensor, config: SearchConfig) -> list[Hypothesis]:
    """The best hypothesis of each source: greedy search if the beam is 1, else beam search.

    Args:
        model: what gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: how to search.

    Raises:
        EvalError: if the model's log-probabilities are not finite.
    """
    if config.beam == 1:
        return greedy_search(model, src, config)
    return [hypotheses[0] for hypotheses in beam_search(model, src, config)]
