"""Whichever search the configuration names."""

from __future__ import annotations

from torch import Tensor

from mnmt_eval.search.beam import beam_search, flat_beam_search
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.greedy import greedy_search
from mnmt_eval.search.hypotheses import Hypothesis
from mnmt_eval.search.protocol import FlatModel, State, TranslationModel
from mnmt_eval.search.sampling import sample


def search(
    model: TranslationModel[State], src: Tensor, config: SearchConfig, *, prefix: Tensor | None = None
) -> list[list[Hypothesis]]:
    """Translations of each source: drawn, or found by greedy search if the beam is 1, else by beam search.

    Args:
        model: What gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: How to search.
        prefix: `(batch, prefix_len)` tokens that targets are forced to begin with; they count neither in
            lengths nor in log-probabilities, and are no part of what is returned.

    Returns:
        At least one and at most `config.n_best` hypotheses of each source, best score first.

    Raises:
        EvalError: If `prefix` does not fit, or the model's log-probabilities are not finite.
    """
    if config.sampling:
        return sample(model, src, config, prefix=prefix)
    if config.beam == 1:
        return greedy_search(model, src, config, prefix=prefix)
    if config.cache == "flat" and isinstance(model, FlatModel):
        return flat_beam_search(model, src, config, prefix=prefix)
    return beam_search(model, src, config, prefix=prefix)
