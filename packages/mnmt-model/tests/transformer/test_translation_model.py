"""What holds for every architecture, and the encoder-decoder against torch's own Transformer."""

import math
from dataclasses import replace

import pytest
import rounding
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import VOCAB_SIZE, random_model
from torch import Tensor, nn

from mnmt_model.transformer.architectures import EncoderDecoder
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, Architecture, ModelConfig
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.translation_model import TranslationModel

T5 = ModelConfig(decoder_layers=2, d_model=16, num_heads=2, d_ff=32)
VANILLA = replace(T5, **VASWANI)
PARTS = {"t5": T5, "vanilla": VANILLA}

token_lists = st.lists(st.integers(2, VOCAB_SIZE - 1), min_size=1, max_size=8)
pair_lists = st.lists(st.tuples(token_lists, token_lists), min_size=1, max_size=4)
Pairs = list[tuple[list[int], list[int]]]

every_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)
all_parts = pytest.mark.parametrize("parts", PARTS)


def make_model(architecture: Architecture, parts: str) -> TranslationModel:
    return random_model(replace(PARTS[parts], architecture=architecture))


def padded(rows: list[list[int]], extra: int = 0) -> Tensor:
    table = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return nn.functional.pad(table, (0, extra))


def batch(pairs: Pairs, src_extra: int = 0, tgt_extra: int = 0) -> tuple[Sentences, Sentences]:
    src, tgt = zip(*pairs, strict=True)
    return Sentences.from_padded(padded(src, src_extra)), Sentences.from_padded(padded(tgt, tgt_extra))


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-4)


@every_architecture
@all_parts
@given(pairs=pair_lists, src_extra=st.integers(0, 3), tgt_extra=st.integers(0, 3))
@settings(max_examples=6)
def test_padding_changes_no_loss(
    architecture: Architecture, parts: str, pairs: Pairs, src_extra: int, tgt_extra: int
) -> None:
    bare = make_model(architecture, parts)(*batch(pairs))
    more = make_model(architecture, parts)(*batch(pairs, src_extra, tgt_extra))
    assert bare.pair_nats.shape == (len(pairs),)
    assert bare.objective.shape == ()
    assert_close(more.objective, bare.objective)
    assert_close(more.pair_nats, bare.pair_nats)


@every_architecture
@all_parts
@given(pairs=pair_lists, order=st.randoms(use_true_random=False))
@settings(max_examples=6)
def test_batch_mates_and_their_order_change_no_loss(
    architecture: Architecture, parts: str, pairs: Pairs, order: object
) -> None:
    model = make_model(architecture, parts)
    batched = model(*batch(pairs))
    single = [model(*batch([pair])) for pair in pairs]
    assert_close(batched.pair_nats, torch.cat([each.pair_nats for each in single]))
    assert_close(batched.objective, sum(each.objective for each in single))
    places = list(range(len(pairs)))
    order.shuffle(places)  # type: ignore[attr-defined]
    shuffled = model(*batch([pairs[place] for place in places]))
    assert_close(shuffled.pair_nats, batched.pair_nats[places])
    assert_close(shuffled.objective, batched.objective)


PAIRS: Pairs = [([5, 6, 7, 1], [9, 1]), ([8], [4, 10, 11, 12, 1]), ([3, 2], [7])]


@every_architecture
@all_parts
def test_padding_changes_no_gradient(architecture: Architecture, parts: str) -> None:
    model = make_model(architecture, parts)
    names, parameters = zip(*model.named_parameters(), strict=True)
    bare = torch.autograd.grad(model(*batch(PAIRS)).objective, parameters)
    more = torch.autograd.grad(model(*batch(PAIRS, 3, 2)).objective, parameters)
    for name, expected, actual in zip(names, bare, more, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4, msg=name)
        assert expected.abs().sum() > 0 or name.endswith("k.bias"), name


@every_architecture
def test_pairs_are_weighed_in_the_objective(architecture: Architecture) -> None:
    model = make_model(architecture, "t5")
    weights = torch.tensor([0.5, 0.0, 3.0])
    options = {"label_smoothing": 0.1, "z_loss": 1e-2}
    weighed = model(*batch(PAIRS), pair_weights=weights, **options)
    single = torch.stack([model(*batch([pair]), **options).objective for pair in PAIRS])
    assert_close(weighed.objective, single @ weights)
    assert_close(weighed.pair_nats, model(*batch(PAIRS)).pair_nats)
    assert not weighed.pair_nats.requires_grad


@every_architecture
@all_parts
def test_losses_are_those_of_the_logits(architecture: Architecture, parts: str) -> None:
    model = make_model(architecture, parts)
    src, tgt = (padded(side) for side in zip(*PAIRS, strict=True))
    logits = model.logits(src, tgt)
    assert logits.shape == (3, 5, VOCAB_SIZE)
    assert logits[tgt == 0].count_nonzero() == 0
    nats = nn.functional.cross_entropy(logits.transpose(1, 2), tgt, reduction="none", ignore_index=0)
    objective, pair_nats, _ = model(*batch(PAIRS))
    assert_close(pair_nats, nats.sum(1))
    if architecture != "causal-lm":
        assert_close(objective, nats.sum())


@every_architecture
@all_parts
def test_a_source_with_no_token_harms_nobody(architecture: Architecture, parts: str) -> None:
    src, tgt = torch.tensor([[0, 0], [5, 1]]), torch.tensor([[4, 1], [6, 1]])
    losses = make_model(architecture, parts)(Sentences.from_padded(src), Sentences.from_padded(tgt))
    assert losses.pair_nats.isfinite().all()
    single = make_model(architecture, parts)(Sentences.from_padded(src[1:]), Sentences.from_padded(tgt[1:]))
    assert_close(losses.pair_nats[1:], single.pair_nats)


@every_architecture
def test_weights_have_shapes_before_they_have_memory(architecture: Architecture) -> None:
    config = replace(VANILLA, architecture=architecture)
    with torch.device("meta"):
        planned = build_model(config, VOCAB_SIZE).state_dict()
    real = build_model(config, VOCAB_SIZE).state_dict()
    assert {name: weight.shape for name, weight in planned.items()} == {
        name: weight.shape for name, weight in real.items()
    }


@pytest.mark.parametrize(
    ("embeddings", "names"),
    [
        ("shared", {"embedding", "softmax"}),
        ("tied", {"embedding"}),
        ("tied-target", {"embedding", "src_embedding"}),
        ("separate", {"embedding", "src_embedding", "softmax"}),
    ],
)
@every_architecture
def test_matrices_of_the_vocabulary(architecture: Architecture, embeddings: str, names: set[str]) -> None:
    config = replace(T5, architecture=architecture, embeddings=embeddings)
    shapes = {name: tuple(weight.shape) for name, weight in build_model(config, 30).state_dict().items()}
    assert {name for name, shape in shapes.items() if 30 in shape} == {f"{name}.weight" for name in names}


def torch_layer(layer: nn.Module, kind: type[nn.Module], config: ModelConfig) -> nn.Module:
    """Torch's encoder or decoder layer with the weights of ours."""
    theirs = kind(
        config.d_model, config.num_heads, config.d_ff, dropout=0.0, activation="relu", layer_norm_eps=1e-6,
        batch_first=True, norm_first=config.norm_order == "pre",
    )  # fmt: skip
    ours, weights = layer.state_dict(), {}
    attentions = {"self_attn": "attention"}
    norms = ["attention_norm", "feed_forward_norm"]
    if kind is nn.TransformerDecoderLayer:
        attentions["multihead_attn"] = "cross_attention"
        norms.insert(1, "cross_norm")
    for end in ("weight", "bias"):
        for their_name, name in attentions.items():
            parts = [ours[f"{name}.{part}.{end}"] for part in "qkv"]
            weights[f"{their_name}.in_proj_{end}"] = torch.cat(parts)
            weights[f"{their_name}.out_proj.{end}"] = ours[f"{name}.o.{end}"]
        for number, name in enumerate(norms, start=1):
            weights[f"norm{number}.{end}"] = ours[f"{name}.{end}"]
        weights[f"linear1.{end}"] = ours[f"feed_forward.wi.{end}"]
        weights[f"linear2.{end}"] = ours[f"feed_forward.wo.{end}"]
    theirs.load_state_dict(weights)
    return theirs


def embedded(ids: Tensor, weight: Tensor) -> Tensor:
    """Embeddings times sqrt(d_model) plus sinusoids, the sines before the cosines."""
    d_model = weight.size(1)
    table = torch.zeros(ids.size(1), d_model)
    for position in range(ids.size(1)):
        for i in range(d_model // 2):
            angle = position / 10_000 ** (2 * i / d_model)
            table[position, i], table[position, d_model // 2 + i] = math.sin(angle), math.cos(angle)
    return weight[ids] * math.sqrt(d_model) + table


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_the_vanilla_encoder_decoder_is_torchs(norm_order: str) -> None:
    config = replace(VANILLA, norm_order=norm_order, encoder_layers=3)
    model = random_model(config)
    assert isinstance(model, EncoderDecoder)
    generator = torch.Generator().manual_seed(0)
    src, tgt = (torch.randint(1, VOCAB_SIZE, (3, length), generator=generator) for length in (300, 7))
    src[1, 4:], tgt[2, 1:] = 0, 0
    weight, hidden = model.embedding.weight, src == 0

    x = embedded(src, weight)
    for layer in model.encoder.layers:
        x = torch_layer(layer, nn.TransformerEncoderLayer, config)(x, src_key_padding_mask=hidden)
    memory = model.encoder.norm(x) if norm_order == "pre" else x
    sentences = Sentences.from_padded(src)
    rounding.assert_close(
        model.encode(sentences), sentences.flatten(memory), model, lambda: model.encode(sentences)
    )

    y = embedded(nn.functional.pad(tgt[:, :-1], (1, 0)), weight)
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    for layer in model.decoder.layers:
        theirs = torch_layer(layer, nn.TransformerDecoderLayer, config)
        y = theirs(y, memory, tgt_mask=future, memory_key_padding_mask=hidden)
    states = model.decoder.norm(y) if norm_order == "pre" else y
    expected = (states @ weight.T)[tgt != 0]
    rounding.assert_close(model.logits(src, tgt)[tgt != 0], expected, model, lambda: model.logits(src, tgt))
