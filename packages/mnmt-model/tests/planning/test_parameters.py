from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model.planning.parameters import StackCount, count_parameters
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.model_config import ARCHITECTURES, ModelConfig
from mnmt_model.transformer.translation_model import TranslationModel


@st.composite
def configs(draw: st.DrawFn) -> ModelConfig:
    architecture = draw(st.sampled_from(ARCHITECTURES))
    return ModelConfig(
        architecture=architecture,
        encoder_layers=draw(st.integers(1, 3)) if architecture == "encdec" else None,
        decoder_layers=draw(st.integers(1, 3)),
        d_model=2 * draw(st.integers(1, 20)),
        num_heads=draw(st.integers(1, 4)),
        head_dim=draw(st.integers(1, 9)),
        d_ff=draw(st.integers(1, 50)),
        feed_forward=draw(st.sampled_from(["gated-gelu", "relu"])),
        norm=draw(st.sampled_from(["rms", "layer"])),
        norm_order=draw(st.sampled_from(["pre", "post"])),
        positions=draw(st.sampled_from(["relative", "sinusoidal"])),
        embeddings=draw(st.sampled_from(["shared", "tied", "tied-target", "separate"])),
        biases=draw(st.booleans()),
        num_experts=draw(st.sampled_from([0, 2, 3, 8])),
        experts_every=draw(st.integers(1, 4)),
        expert_feed_forward=draw(st.sampled_from(["relu", "gated-gelu", "gated-silu"])),
        shared_experts=draw(st.integers(0, 2)),
    )


def build(config: ModelConfig, vocab_size: int, src_vocab_size: int) -> TranslationModel:
    with torch.device("meta"):
        return build_model(config, vocab_size, src_vocab_size=src_vocab_size)


def source_vocab_size(config: ModelConfig, vocab_size: int) -> int:
    own = config.embeddings in ("separate", "tied-target") and not config.predicts_source
    return vocab_size + 7 if own else vocab_size


def part_of(name: str) -> str:
    """The part of a stack that a parameter belongs to, from its name."""
    if "position_bias" in name:
        return "position_biases"
    if "norm" in name:
        return "norms"
    if name.endswith("bias"):
        return "biases"
    if ".experts." in name:
        return "experts"
    if ".shared." in name:
        return "shared_experts"
    if ".gate." in name:
        return "gates"
    if "feed_forward" in name:
        return "feed_forward"
    return "cross_attention" if "cross_attention" in name else "attention"


def sizes_by_part(module: torch.nn.Module) -> dict[str, int]:
    sizes = dict.fromkeys(StackCount.__dataclass_fields__, 0)
    for name, parameter in module.named_parameters():
        sizes[part_of(name)] += parameter.numel()
    return sizes


@given(config=configs(), vocab_size=st.integers(1, 100))
def test_every_part_is_counted_as_it_is_built(config: ModelConfig, vocab_size: int) -> None:
    src_vocab_size = source_vocab_size(config, vocab_size)
    model = build(config, vocab_size, src_vocab_size)
    counted = count_parameters(config, vocab_size, src_vocab_size=src_vocab_size)
    assert vars(counted.decoder) == sizes_by_part(model.target_stack)
    if counted.encoder is None:
        assert not hasattr(model, "encoder")
        assert counted.encoder_size == 0
    else:
        assert vars(counted.encoder) == sizes_by_part(model.get_submodule("encoder"))
    assert counted.num_params == sum(parameter.numel() for parameter in model.parameters())


@given(config=configs(), choices=st.integers(1, 3))
def test_a_token_passes_what_a_model_of_its_experts_has_and_all_of_a_gate(
    config: ModelConfig, choices: int
) -> None:
    if not config.num_experts:
        counted = count_parameters(config, 10)
        assert counted.active_size == counted.size
        return
    config = replace(config, num_experts=8, experts_per_token=choices, renormalise="never")
    counted, few = (count_parameters(replace(config, num_experts=n), 10) for n in (8, max(2, choices)))
    encoder_gates, few_encoder_gates = (c.encoder.gates if c.encoder else 0 for c in (counted, few))
    gates = counted.decoder.gates + encoder_gates - few.decoder.gates - few_encoder_gates
    # A mixture has two experts or more.
    assert counted.active_size == (few.active_size if choices == 1 else few.size) + gates


def test_every_second_layer_has_experts() -> None:
    config = ModelConfig(encoder_layers=4, decoder_layers=5, d_model=8, d_ff=16, num_experts=3, biases=True)
    counted = count_parameters(config, 10)
    assert counted.encoder is not None
    for stack, mixtures, dense in ((counted.encoder, 2, 2), (counted.decoder, 2, 3)):
        assert stack.experts == mixtures * 3 * 2 * 8 * 16
        assert stack.gates == mixtures * 3 * 8
        assert stack.feed_forward == dense * 3 * 8 * 16


@pytest.mark.parametrize(
    ("embeddings", "src_embedding", "tgt_embedding", "softmax"),
    [("shared", 80, 0, 80), ("tied", 80, 0, 0), ("tied-target", 96, 80, 0), ("separate", 96, 80, 80)],
)
def test_a_matrix_that_serves_twice_is_counted_once(
    embeddings: str, src_embedding: int, tgt_embedding: int, softmax: int
) -> None:
    config = ModelConfig(d_model=8, num_heads=2, embeddings=embeddings)  # type: ignore[arg-type]
    counted = count_parameters(config, 10, src_vocab_size=12 if src_embedding == 96 else None)
    assert (counted.src_embedding, counted.tgt_embedding, counted.softmax) == (
        src_embedding,
        tgt_embedding,
        softmax,
    )
    assert counted.embedding == src_embedding + tgt_embedding


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ModelConfig(), r'must be `vocab_size` \(10\) where `embeddings` is "shared", but is 12\.'),
        (
            ModelConfig(architecture="causal-lm", embeddings="separate"),
            r"must be `vocab_size` \(10\) for causal-lm, whose softmax predicts the source too, but is 12\.",
        ),
    ],
)
def test_vocabularies_that_share_a_matrix_are_of_one_size(config: ModelConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count_parameters(config, 10, src_vocab_size=12)
