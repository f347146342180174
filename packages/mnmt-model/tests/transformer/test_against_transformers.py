"""The model against Hugging Face's T5 with the same weights."""

import pytest
import torch
from rounding import assert_close
from torch import Tensor

from mnmt_model import ModelConfig, build_model
from mnmt_model.transformer.build import initialise
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.translation_model import TranslationModel

transformers = pytest.importorskip(
    "transformers", reason="the oracle of dependency group `oracle` is not installed"
)

CONFIG = ModelConfig(encoder_layers=2, decoder_layers=3, d_model=32, num_heads=4, head_dim=6, d_ff=48)
VOCAB_SIZE = 50


@pytest.fixture(scope="module")
def ours() -> TranslationModel:
    model = build_model(CONFIG, VOCAB_SIZE)
    initialise(model, seed=3)
    return model


@pytest.fixture(scope="module")
def theirs(ours: TranslationModel):
    config = transformers.T5Config(
        vocab_size=VOCAB_SIZE,
        d_model=CONFIG.d_model,
        d_kv=CONFIG.resolved_head_dim,
        d_ff=CONFIG.d_ff,
        num_layers=CONFIG.num_encoder_layers,
        num_decoder_layers=CONFIG.decoder_layers,
        num_heads=CONFIG.num_heads,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        dropout_rate=0.0,
        attn_implementation="eager",
    )
    model = transformers.T5ForConditionalGeneration(config)
    weights = {their_name(name): tensor for name, tensor in ours.state_dict().items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected
    assert set(missing) <= {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    return model


def their_name(name: str) -> str:
    """Hugging Face's name of our weight."""
    if name in ("embedding.weight", "softmax.weight"):
        return {"embedding.weight": "shared.weight", "softmax.weight": "lm_head.weight"}[name]
    stack, rest = name.split(".", 1)
    if rest == "norm.weight":
        return f"{stack}.final_layer_norm.weight"
    if rest == "position_bias.weight":
        return f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    _, layer, part, *tail = rest.split(".")
    feed_forward = 1 if stack == "encoder" else 2
    sublayer = {
        "attention": "0.SelfAttention",
        "attention_norm": "0.layer_norm",
        "cross_attention": "1.EncDecAttention",
        "cross_norm": "1.layer_norm",
        "feed_forward": f"{feed_forward}.DenseReluDense",
        "feed_forward_norm": f"{feed_forward}.layer_norm",
    }[part]
    return f"{stack}.block.{layer}.layer." + ".".join([sublayer, *tail])


@pytest.fixture(scope="module")
def pairs() -> tuple[Tensor, Tensor]:
    """Longer than the exact buckets and than the farthest distance, padded on both sides."""
    generator = torch.Generator().manual_seed(0)
    src = torch.randint(2, VOCAB_SIZE, (3, 150), generator=generator)
    tgt = torch.randint(2, VOCAB_SIZE, (3, 140), generator=generator)
    src[1, 90:] = 0
    tgt[2, 17:] = 0
    return src, tgt


def shift_right(tgt: Tensor) -> Tensor:
    return torch.nn.functional.pad(tgt[:, :-1], (1, 0))


def test_logits_are_the_same(ours, theirs, pairs) -> None:
    src, tgt = pairs
    expected = theirs(input_ids=src, attention_mask=src != 0, decoder_input_ids=shift_right(tgt)).logits
    real = tgt != 0
    assert_close(ours.logits(src, tgt)[real], expected[real], ours, lambda: ours.logits(src, tgt))


def test_loss_and_gradients_are_the_same(ours, theirs, pairs) -> None:
    src, tgt = pairs
    labels = tgt.masked_fill(tgt == 0, -100)
    expected = theirs(
        input_ids=src, attention_mask=src != 0, decoder_input_ids=shift_right(tgt), labels=labels
    ).loss
    loss = ours(Sentences.from_padded(src), Sentences.from_padded(tgt)).objective / (tgt != 0).sum()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)
    ours.zero_grad()
    theirs.zero_grad()
    loss.backward()
    expected.backward()
    gradients = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        reference = gradients[their_name(name)].grad
        torch.testing.assert_close(
            parameter.grad, reference, rtol=1e-4, atol=1e-6 * float(reference.norm()) + 1e-8
        )
