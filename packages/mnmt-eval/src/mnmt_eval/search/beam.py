"""Beam search over a whole batch at once, with caches that are reordered."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_eval.protocol import State, TranslationModel
from mnmt_eval.search.beginning import begin, beginnings
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hypothesis import Hypothesis
from mnmt_eval.search.live_beam import first_beam, grow, settle


@torch.inference_mode()
def beam_search(
    model: TranslationModel[State], src: Tensor, config: SearchConfig, *, prefix: Tensor | None = None
) -> list[list[Hypothesis]]:
    """Find the best translations that a beam of `config.beam` hypotheses leads to.

    A sentence leaves the batch when it is done. What is found for it does not depend on the others, up to the
    rounding of the model.

    Args:
        model: What gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: How to search.
        prefix: `(batch, prefix_len)` tokens that targets are forced to begin with; they count neither in
            lengths nor in log-probabilities, and are no part of what is returned.

    Returns:
        At most `config.n_best` hypotheses of each source, best score first.

    Raises:
        EvalError: If `prefix` does not fit, or the model's log-probabilities are not finite.
    """
    begun = beginnings(src, prefix)
    if not len(src):
        return []
    found: dict[int, list[Hypothesis]] = {}
    beam = first_beam(src, begun, config)
    state = begin(model, src, begun)
    while len(beam.sentences):
        log_probs, state = model.step(state, beam.last.flatten())
        grown = grow(beam, log_probs.view(*beam.parents.shape, -1), config)
        done, kept = settle(grown, config)
        found |= done
        state = state.select((kept[:, None] * beam.width + grown.parents[kept]).flatten())
        beam = grown.of(kept)
    return [found[sentence] for sentence in range(len(src))]
