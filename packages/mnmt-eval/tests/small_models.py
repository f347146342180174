"""Small models of `mnmt_model` to search with: every architecture, and mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain

import pytest
import torch

from mnmt_eval.search import (
    Hypothesis,
    LengthPenalty,
    MaxLength,
    SamplingConfig,
    SearchConfig,
    beam_search,
    search,
)
from mnmt_model.transformer import (
    ARCHITECTURES,
    VASWANI,
    Architecture,
    IncrementalModel,
    ModelConfig,
    build_model,
    initialise,
)

T5 = ModelConfig(decoder_layers=2, d_model=16, num_heads=2, head_dim=6, d_ff=24)
PARTS = {"t5": T5, "vanilla": replace(T5, **VASWANI), "mixture of experts": replace(T5, num_experts=4)}
SRC = torch.tensor([[5, 6, 7, 9, 1], [8, 1, 0, 0, 0], [3, 3, 1, 0, 0]])
CONFIGS = {
    "gnmt": SearchConfig(
        beam=4,
        n_best=4,
        length_penalty=LengthPenalty(kind="gnmt"),
        max_length=MaxLength(ratio=1, extra=9),
        early_stopping="exact",
    ),
    "power": SearchConfig(
        beam=5,
        n_best=3,
        length_penalty=LengthPenalty(kind="power", alpha=1.0),
        max_length=MaxLength(ratio=2, extra=6),
    ),
}
MODELS: dict[tuple[str, str], IncrementalModel] = {}

Find = Callable[..., list[list[Hypothesis]]]

SEARCHES: dict[str, Find] = {
    "flat": partial(search, config=CONFIGS["power"]),
    "reordered": partial(beam_search, config=CONFIGS["gnmt"]),
    "greedy": partial(search, config=SearchConfig(max_length=MaxLength(ratio=1, extra=9))),
    "sampling": partial(search, config=SearchConfig(sampling=SamplingConfig(top_p=0.9), n_best=2)),
}

all_models = pytest.mark.parametrize(
    ("architecture", "parts"), [(name, parts) for name in ARCHITECTURES for parts in PARTS]
)
all_configs = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
all_searches = pytest.mark.parametrize("find", SEARCHES.values(), ids=SEARCHES)


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


def close(result: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    """The same tokens, and the same log-probabilities but for rounding."""
    assert [[h.tokens for h in n_best] for n_best in result] == [
        [h.tokens for h in n_best] for n_best in expected
    ]
    for ours, theirs in zip(chain(*result), chain(*expected), strict=True):
        assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, rel=1e-4, abs=1e-5)
        assert ours.score == pytest.approx(theirs.score, rel=1e-4)
