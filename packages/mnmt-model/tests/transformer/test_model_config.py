import re
from dataclasses import replace

import pytest

from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture, ModelConfig


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"architecture": "encoder-decoder"},
            "`architecture` must be one of encdec, prefix-lm, prefix-lm-toponly, causal-lm, "
            "causal-lm-tgtonly, but is encoder-decoder.",
        ),
        ({"decoder_layers": 0}, "`decoder_layers` must be at least 1, but is 0."),
        ({"d_model": -4}, "`d_model` must be at least 1, but is -4."),
        ({"num_heads": 0}, "`num_heads` must be at least 1, but is 0."),
        ({"d_ff": 0}, "`d_ff` must be at least 1, but is 0."),
        ({"head_dim": 0}, "`head_dim` must be at least 1, but is 0."),
        ({"encoder_layers": 0}, "`encoder_layers` must be at least 1, but is 0."),
        (
            {"d_model": 30, "num_heads": 4},
            "`num_heads` must divide `d_model` (30) where `head_dim` is not given, but is 4.",
        ),
        (
            {"d_model": 15, "num_heads": 3, "positions": "sinusoidal"},
            "`d_model` must be even for sinusoidal positions, but is 15.",
        ),
        (
            {"capacity_factor": float("inf")},
            "`capacity_factor` must be at most 1,000, beyond any published model, but is inf.",
        ),
        (
            {"eval_capacity_factor": float("nan")},
            "`eval_capacity_factor` must be at least 0, but is nan.",
        ),
        ({"shared_experts": -1}, "`shared_experts` must be at least 0, but is -1."),
        ({"num_experts": -4}, "`num_experts` must be at least 0, but is -4."),
        ({"num_experts": 1}, "`experts_per_token` must be at most `num_experts` (1), but is 2."),
        ({"experts_every": 0}, "`experts_every` must be at least 1, but is 0."),
        ({"capacity_factor": -0.5}, "`capacity_factor` must be at least 0, but is -0.5."),
        ({"experts_per_token": 9, "num_experts": 16}, "`experts_per_token` must be at most 8, but is 9."),
        ({"experts_per_token": 0}, "`experts_per_token` must be at least 1, but is 0."),
        (
            {"experts_per_token": 5, "num_experts": 4},
            "`experts_per_token` must be at most `num_experts` (4), but is 5.",
        ),
        (
            {"experts_per_token": 1, "num_experts": 4},
            '`renormalise` must be "never" where `experts_per_token` is 1, or the weight is always 1 and the '
            'gate learns nothing, but is "before".',
        ),
        ({"second_expert_threshold": -1.0}, "`second_expert_threshold` must be above 0, but is -1.0."),
        ({"norm_epsilon": 0.0}, "`norm_epsilon` must be above 0, but is 0.0."),
        (
            {"architecture": "prefix-lm", "encoder_layers": 2},
            "`encoder_layers` must be left out for prefix-lm, whose one stack has `decoder_layers`, "
            "but is 2.",
        ),
        (
            {"architecture": "causal-lm", "encoder_layers": -1},
            "`encoder_layers` must be at least 0, but is -1.",
        ),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ModelConfig(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        {"d_model": 30, "num_heads": 4, "head_dim": 7},
        {"d_model": 15, "num_heads": 3},
        {"architecture": "prefix-lm", "encoder_layers": 0},
        {"decoder_layers": 1, "d_model": 1, "num_heads": 1, "d_ff": 1},
    ],
)
def test_what_can_be_is_taken(given: dict[str, object]) -> None:
    config = ModelConfig(**given)  # type: ignore[arg-type]
    assert {name: getattr(config, name) for name in given} == given


@pytest.mark.parametrize(
    ("architecture", "is_language_model", "source_is_causal", "top_only", "predicts_source"),
    # Zhang et al. 2022, Table 1.
    [
        ("encdec", False, False, True, False),
        ("prefix-lm", True, False, False, False),
        ("prefix-lm-toponly", True, False, True, False),
        ("causal-lm", True, True, False, True),
        ("causal-lm-tgtonly", True, True, False, False),
    ],
)
def test_what_an_architecture_is(
    architecture: Architecture,
    is_language_model: bool,
    source_is_causal: bool,
    top_only: bool,
    predicts_source: bool,
) -> None:
    config = ModelConfig(architecture=architecture)
    assert config.is_language_model == is_language_model
    assert config.source_is_causal == source_is_causal
    assert config.top_only == top_only
    assert config.predicts_source == predicts_source


def test_every_architecture_is_named() -> None:
    assert ARCHITECTURES == ("encdec", "prefix-lm", "prefix-lm-toponly", "causal-lm", "causal-lm-tgtonly")


def test_an_encoder_is_as_deep_as_the_decoder_unless_said() -> None:
    config = ModelConfig(decoder_layers=5)
    assert config.num_encoder_layers == 5
    assert replace(config, encoder_layers=2).num_encoder_layers == 2
    assert replace(config, architecture="causal-lm").num_encoder_layers == 0


def test_heads_share_the_model_unless_their_width_is_given() -> None:
    config = ModelConfig(d_model=48, num_heads=6)
    assert (config.resolved_head_dim, config.d_attention) == (8, 48)
    config = replace(config, head_dim=5)
    assert (config.resolved_head_dim, config.d_attention) == (5, 30)
