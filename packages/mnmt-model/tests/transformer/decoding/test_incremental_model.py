"""One token at a time against all at once."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import VOCAB_SIZE, random_model
from torch import Tensor

from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.decoding import IncrementalModel
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, Architecture, ModelConfig
from mnmt_model.transformer.translation_model import TranslationModel

T5 = ModelConfig(decoder_layers=2, d_model=16, num_heads=2, head_dim=6, d_ff=24)
VANILLA = replace(T5, **VASWANI)
PARTS = {
    "t5": T5,
    "vanilla": VANILLA,
    "post-norm t5": replace(T5, norm_order="post", embeddings="separate"),
    "mixture of experts": replace(T5, num_experts=4),
    "gated and shared experts": replace(
        T5, num_experts=4, capacity_factor=0.0, expert_feed_forward="gated-silu", shared_experts=1
    ),
    "pre-norm vanilla": replace(VANILLA, norm_order="pre", embeddings="tied-target"),
}

SRC = torch.tensor([[5, 6, 7, 9, 1], [8, 1, 0, 0, 0], [3, 3, 1, 0, 0]])


def make_model(architecture: Architecture, parts: str) -> TranslationModel:
    return random_model(replace(PARTS[parts], architecture=architecture))


def random_targets(rows: int, length: int) -> Tensor:
    return torch.randint(2, VOCAB_SIZE, (rows, length), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_one_token_at_a_time_equals_all_at_once(architecture: Architecture, parts: str) -> None:
    # Farther than T5's exact buckets.
    tgt = random_targets(rows=len(SRC), length=36)
    expected = make_model(architecture, parts).eval().logits(SRC, tgt).log_softmax(-1)
    searched = IncrementalModel(make_model(architecture, parts))
    state = searched.encode(SRC, SRC == 0)
    tokens = torch.zeros(len(SRC), dtype=torch.int64)
    for position in range(tgt.size(1)):
        assert state.length == position
        log_probs, state = searched.step(state, tokens)
        torch.testing.assert_close(log_probs, expected[:, position], rtol=1e-4, atol=1e-4)
        tokens = tgt[:, position]


rows = st.lists(st.integers(0, len(SRC) - 1), min_size=1, max_size=5)


@pytest.mark.parametrize("parts", ["t5", "vanilla"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@given(choices=st.lists(rows, min_size=1, max_size=6), seed=st.integers(0, 99))
@settings(max_examples=4)
def test_rows_that_are_repeated_or_dropped_go_on_as_whole_hypotheses(
    architecture: Architecture, parts: str, choices: list[list[int]], seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    searched = IncrementalModel(make_model(architecture, parts))
    state = searched.encode(SRC, SRC == 0)
    tokens = torch.zeros(len(SRC), dtype=torch.int64)
    src, history = SRC, SRC[:, :0]
    for choice in choices:
        log_probs, state = searched.step(state, tokens)
        selection = torch.tensor([row % len(src) for row in choice])
        state, src = state.select(selection), src[selection]
        tokens = torch.randint(2, VOCAB_SIZE, (len(selection),), generator=generator)
        history = torch.cat([history[selection], tokens[:, None]], dim=1)
    log_probs, _ = searched.step(state, tokens)
    following = torch.cat([history, torch.ones_like(tokens)[:, None]], dim=1)
    expected = make_model(architecture, parts).logits(src, following)[:, -1].log_softmax(-1)
    torch.testing.assert_close(log_probs, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_the_padding_mask_hides_is_not_read(architecture: Architecture) -> None:
    searched = IncrementalModel(make_model(architecture, "t5"))
    tokens = torch.zeros(len(SRC), dtype=torch.int64)
    hidden = SRC == 0
    expected, _ = searched.step(searched.encode(SRC, hidden), tokens)
    filled, _ = searched.step(searched.encode(SRC.masked_fill(hidden, 4), hidden), tokens)
    assert torch.equal(filled, expected)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_state_is_of_the_models_precision_and_log_probabilities_of_float32(
    architecture: Architecture,
) -> None:
    model = build_model(replace(T5, architecture=architecture), VOCAB_SIZE, dropout=0.5, dtype=torch.bfloat16)
    initialise(model, seed=1)
    incremental = IncrementalModel(model)
    state = incremental.encode(SRC, SRC == 0)
    log_probs, state = incremental.step(state, torch.zeros(len(SRC), dtype=torch.int64))
    assert log_probs.dtype == torch.float32
    assert {layer.target.keys.dtype for layer in state.layers} == {torch.bfloat16}
    # Evaluation mode: dropout would not give the same again.
    again, _ = incremental.step(incremental.encode(SRC, SRC == 0), torch.zeros(len(SRC), dtype=torch.int64))
    assert torch.equal(log_probs, again)
