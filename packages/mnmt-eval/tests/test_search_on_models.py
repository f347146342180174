"""Search with the models of `mnmt_model`: every architecture, and mixtures of experts."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
import torch
from torch import Tensor

from mnmt_eval.protocol import EOS, PAD, FlatModel
from mnmt_eval.search import Hypothesis, LengthPenalty, MaxLength, Sampling, SearchConfig, search
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.decoding import IncrementalModel
from mnmt_model.transformer.initialise import initialise
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, Architecture, ModelConfig

T5 = ModelConfig(decoder_layers=2, d_model=16, num_heads=2, head_dim=6, d_ff=24)
PARTS = {"t5": T5, "vanilla": replace(T5, **VASWANI), "mixture of experts": replace(T5, num_experts=4)}
SRC = torch.tensor([[5, 6, 7, 9, 1], [8, 1, 0, 0, 0], [3, 3, 1, 0, 0]])
PREFIX = torch.tensor([[4], [7], [5]])
CONFIGS = {
    "gnmt": SearchConfig(beam=4, n_best=4, max_length=MaxLength(ratio=1, extra=9)),
    "power": SearchConfig(
        beam=5,
        n_best=3,
        length_penalty=LengthPenalty(kind="power", alpha=1.0),
        max_length=MaxLength(ratio=2, extra=6),
        min_length=5,
        no_repeat_ngram=2,
    ),
}
MODELS: dict[tuple[str, str], IncrementalModel] = {}

all_models = pytest.mark.parametrize(
    ("architecture", "parts"), [(name, parts) for name in ARCHITECTURES for parts in PARTS]
)
all_configs = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def model(architecture: Architecture, parts: str) -> IncrementalModel:
    if (architecture, parts) not in MODELS:
        built = build_model(replace(PARTS[parts], architecture=architecture), 20)
        initialise(built, seed=1)
        generator = torch.Generator().manual_seed(2)
        with torch.no_grad():
            for parameter in built.parameters():
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
        MODELS[architecture, parts] = IncrementalModel(built)
    return MODELS[architecture, parts]


def close(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    """The same tokens, and the same log-probabilities but for rounding."""
    assert [[h.tokens for h in n_best] for n_best in found] == [
        [h.tokens for h in n_best] for n_best in expected
    ]
    for ours, theirs in zip(chain(*found), chain(*expected), strict=True):
        assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, rel=1e-4, abs=1e-5)
        assert ours.score == pytest.approx(theirs.score, rel=1e-4)


@all_models
@all_configs
def test_a_flat_buffer_finds_what_reordered_caches_find(
    architecture: Architecture, parts: str, config: SearchConfig
) -> None:
    found = model(architecture, parts)
    assert isinstance(found, FlatModel)
    flat = search(found, SRC, config, prefix=PREFIX)
    close(flat, search(found, SRC, replace(config, cache="reorder"), prefix=PREFIX))


@all_models
@all_configs
def test_log_probabilities_are_those_of_all_tokens_at_once(
    architecture: Architecture, parts: str, config: SearchConfig
) -> None:
    found = model(architecture, parts)
    for src, prefix, hypotheses in zip(SRC, PREFIX, search(found, SRC, config, prefix=PREFIX), strict=True):
        for h in hypotheses:
            tgt = torch.tensor([[*prefix.tolist(), *h.tokens]])
            log_probs = found.model.logits(src[None], tgt).log_softmax(-1)
            expected = log_probs.gather(2, tgt[..., None])[0, len(prefix) :, 0].tolist()
            assert h.token_log_probs == pytest.approx(expected, rel=1e-3, abs=1e-4)
            assert h.log_prob == pytest.approx(sum(expected), rel=1e-3)


SEARCHES = {
    **CONFIGS,
    "reorder": replace(CONFIGS["gnmt"], cache="reorder"),
    "greedy": SearchConfig(max_length=MaxLength(ratio=1, extra=9)),
    "sampling": SearchConfig(sampling=Sampling(top_p=0.9), n_best=2),
}


def alone(found: IncrementalModel, src: Tensor, config: SearchConfig) -> list[Hypothesis]:
    (hypotheses,) = search(found, src[src != PAD][None], config)
    return hypotheses


@all_models
@pytest.mark.parametrize("config", SEARCHES.values(), ids=SEARCHES)
def test_batch_mates_do_not_change_a_translation(
    architecture: Architecture, parts: str, config: SearchConfig
) -> None:
    found = model(architecture, parts)
    close(search(found, SRC, config), [alone(found, src, config) for src in SRC])


def test_targets_end_at_different_lengths() -> None:
    found = [h for n_best in search(model("encdec", "t5"), SRC, CONFIGS["gnmt"]) for h in n_best]
    assert len({len(h.tokens) for h in found}) > 2
    assert any(h.tokens[-1] == EOS for h in found)
