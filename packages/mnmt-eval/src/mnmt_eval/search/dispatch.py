"""The search that options and model call for."""

from __future__ import annotations

from torch import Tensor

from mnmt_eval.search.beam import beam_search, flat_beam_search
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.greedy import greedy_search
from mnmt_eval.search.hypotheses import Hypothesis
from mnmt_eval.search.protocol import FlatSearchModel, SearchModel, State
from mnmt_eval.search.sampling import sample


def search(model: SearchModel[State], src: Tensor, config: SearchConfig) -> list[list[Hypothesis]]:
    """Find or draw translations of each source.

    They are drawn if `config.sampling` is set. Else they are found by greedy search if the beam is 1, and by
    beam search if it is wider: in a flat buffer if the model offers one, with reordered caches if not.

    Args:
        model: The model that gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: The search options.

    Returns:
        At least one and at most `config.n_best` hypotheses of each source, best score first.

    Raises:
        EvalError: If the model's log-probabilities are not finite.
    """
    if config.sampling:
        return sample(model, src, config)
    if config.beam == 1:
        return greedy_search(model, src, config)
    if isinstance(model, FlatSearchModel):
        return flat_beam_search(model, src, config)
    return beam_search(model, src, config)
