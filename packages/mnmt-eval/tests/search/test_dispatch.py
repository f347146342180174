"""Search with the models of `mnmt_model`: every architecture, and mixtures of experts."""

from __future__ import annotations

import pytest
import torch
from small_models import SRC, Find, all_configs, all_models, all_searches, close, model

from mnmt_eval.search import SearchConfig, beam_search, search
from mnmt_eval.search.protocol import PAD, FlatSearchModel
from mnmt_model.transformer import Architecture


@pytest.mark.slow
@all_models
@all_configs
def test_both_caches_find_the_same_with_log_probabilities_of_all_tokens_at_once(
    architecture: Architecture, parts: str, config: SearchConfig
) -> None:
    incremental = model(architecture, parts)
    assert isinstance(incremental, FlatSearchModel)
    flat = search(incremental, SRC, config)
    close(flat, beam_search(incremental, SRC, config))
    for src, hypotheses in zip(SRC, flat, strict=True):
        for h in hypotheses:
            tgt = torch.tensor([h.tokens])
            log_probs = incremental.translation_model.logits(src[None], tgt).log_softmax(-1)
            expected = log_probs.gather(2, tgt[..., None])[0, :, 0].tolist()
            assert h.token_log_probs == pytest.approx(expected, rel=1e-3, abs=1e-4)
            assert h.log_prob == pytest.approx(sum(expected), rel=1e-3)


@pytest.mark.slow
@all_models
@all_searches
def test_batch_mates_do_not_change_a_translation(architecture: Architecture, parts: str, find: Find) -> None:
    incremental = model(architecture, parts)
    alone = [find(incremental, src[src != PAD][None])[0] for src in SRC]
    close(find(incremental, SRC), alone)
