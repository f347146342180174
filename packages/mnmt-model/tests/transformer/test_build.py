from dataclasses import replace
from typing import Any

import pytest
import torch

from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture, ModelConfig
from mnmt_model.transformer.translation_model import TranslationModel

VOCAB_SIZE = 300
# Widths that no two kinds of matrix share, and heads enough to measure the bias of 32 buckets.
T5 = ModelConfig(decoder_layers=1, d_model=96, num_heads=64, head_dim=4, d_ff=384)


def initialised(config: ModelConfig, seed: int = 0) -> TranslationModel:
    model = build_model(config, VOCAB_SIZE, src_vocab_size=None)
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 7.0)
    initialise(model, seed)
    return model


def expected_std(name: str, config: ModelConfig) -> float:
    """T5 1.1's."""
    d_model, head_dim = config.d_model, config.resolved_head_dim
    return {
        "embedding": 1.0,
        "src_embedding": 1.0,
        "q": (d_model * head_dim) ** -0.5,
        "k": d_model**-0.5,
        "v": d_model**-0.5,
        "o": (config.num_heads * head_dim) ** -0.5,
        "wi": d_model**-0.5,
        "wi_0": d_model**-0.5,
        "wi_1": d_model**-0.5,
        "wo": config.d_ff**-0.5,
        "softmax": d_model**-0.5,
        "position_bias": d_model**-0.5,
    }[name.split(".")[-2]]


@pytest.mark.parametrize("parts", [{}, {"feed_forward": "relu", "biases": True, "embeddings": "separate"}])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_matrix_is_drawn_at_its_scale(architecture: Architecture, parts: dict[str, Any]) -> None:
    config = replace(T5, architecture=architecture, **parts)
    for name, weight in initialised(config).state_dict().items():
        if weight.dim() == 2:
            std = expected_std(name, config)
            assert float(weight.std()) == pytest.approx(std, rel=0.05), name
            assert abs(float(weight.mean())) < 5 * std / weight.numel() ** 0.5, name


def test_scaled_attention_draws_queries_as_it_draws_keys() -> None:
    weights = initialised(replace(T5, scaled_attention=True)).state_dict()
    for part in "qkv":
        weight = weights[f"encoder.layers.0.attention.{part}.weight"]
        assert float(weight.std()) == pytest.approx(T5.d_model**-0.5, rel=0.05)


@pytest.mark.parametrize("embeddings", ["tied", "tied-target"])
def test_embeddings_that_serve_the_softmax_are_drawn_at_its_scale(embeddings: Any) -> None:
    model = initialised(replace(T5, embeddings=embeddings))
    assert model.softmax is None
    assert (model.src_embedding is not None) == (embeddings == "tied-target")
    for name, weight in model.state_dict().items():
        if "embedding" in name:
            assert float(weight.std()) == pytest.approx(T5.d_model**-0.5, rel=0.05)


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_norms_are_1_and_biases_0(norm: Any) -> None:
    parameters = initialised(replace(T5, norm=norm, biases=True)).state_dict()
    vectors = {name: parameter for name, parameter in parameters.items() if parameter.dim() == 1}
    norms = {name for name in vectors if name.endswith("norm.weight")}
    # Two norms of an encoder layer, three of a decoder layer, and one on top of each.
    assert len(norms) == 2 + 3 + 2
    assert {float(value) for name in norms for value in vectors[name]} == {1}
    assert {name.split(".")[-1] for name in vectors.keys() - norms} == {"bias"}
    assert {float(value) for name in vectors.keys() - norms for value in vectors[name]} == {0}


def test_a_seed_says_every_weight() -> None:
    torch.manual_seed(1)
    first = initialised(T5, seed=3).state_dict()
    torch.manual_seed(2)
    again, other = initialised(T5, seed=3).state_dict(), initialised(T5, seed=4).state_dict()
    for name, weight in first.items():
        assert torch.equal(weight, again[name])
        assert torch.equal(weight, other[name]) == (weight.dim() == 1)
