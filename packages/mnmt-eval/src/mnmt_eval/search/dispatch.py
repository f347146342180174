"""The search that options and model call for."""

from __future__ import annotations

from torch import Tensor

from mnmt_eval.search.beam import beam_search, flat_beam_search
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.greedy import greedy_search
from mnmt_eval.search.hypotheses import Hypothesis
from mnmt_eval.search.protocol import FlatSearchModel, SearchModel, State
from mnmt_eval.search.sampling import sample


def search(
    model: SearchModel[State], src: Tensor, config: SearchConfig, *, prefix: Tensor | None = None
) -> list[list[Hypothesis]]:
    """Find or draw translations of each source.

    They are drawn if `config.sampling` is set. Else they are found by greedy search if the beam is 1, and by
    beam search if it is wider: in a flat buffer if the model offers one, with reordered caches if not.

    Args:
        model: The model that gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: The search options.
        prefix: `(batch, prefix_len)` tokens that targets are forced to begin with. They count neither in
            lengths nor in log-probabilities, and are not part of the result.

    Returns:
        At least one and at most `config.n_best` hypotheses of each source, best score first.

    Raises:
        EvalError: If `prefix` does not fit, or the model's log-probabilities are not finite.
    """
    if config.sampling:
        return sample(model, src, config, prefix=prefix)
    if config.beam == 1:
        return greedy_search(model, src, config, prefix=prefix)
    if isinstance(model, FlatSearchModel):
        return flat_beam_search(model, src, config, prefix=prefix)
    return beam_search(model, src, config, prefix=prefix)
