"""Language models against the paper's equations, written out for one pair at a time and without padding."""

import math
from dataclasses import replace

import pytest
import torch
from rounding import assert_close, tolerance
from torch import Tensor, nn
from torch.nn.functional import gelu

from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.model_config import ARCHITECTURES, NLLB, VASWANI, Architecture, ModelConfig
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.translation_model import TranslationModel

VOCAB_SIZE = 24
LANGUAGE_MODELS = ARCHITECTURES[1:]
T5 = ModelConfig(architecture="prefix-lm", decoder_layers=3, d_model=16, num_heads=2, head_dim=6, d_ff=24)
VANILLA = replace(T5, **VASWANI)
CONFIGS = {
    "t5": T5,
    "vanilla": VANILLA,
    "post-norm t5": replace(T5, norm_order="post", embeddings="separate"),
    "pre-norm vanilla": replace(VANILLA, norm_order="pre", embeddings="tied-target"),
    "nllb": replace(T5, **NLLB),
    "large epsilon": replace(T5, norm_epsilon=0.3),
    "nllb, large epsilon": replace(T5, **(NLLB | {"norm_epsilon": 0.3})),
}
# One token only, and far enough for T5's logarithmic buckets.
PAIR_LENGTHS = [(13, 4), (2, 27), (1, 1), (22, 1), (6, 6)]


class Reference:
    """(X^l, Y^l) = FFN(SAtt((X^{l-1}, Y^{l-1}), M)) of one pair, in float64 (Zhang et al. 2022, eqs. 3-6)."""

    def __init__(self, model: TranslationModel) -> None:
        self.config = model.config
        self.weights = {name: tensor.double() for name, tensor in model.state_dict().items()}

    def log_probs(self, src: list[int], tgt: list[int]) -> Tensor:
        """Of what follows each input token `(|X| + |Y|, vocab)`; the targets' inputs begin with 0."""
        x, y = self.embed(src, "src_embedding.weight"), self.embed([0, *tgt[:-1]], "embedding.weight")
        mask, bias = self.mask(len(src), len(tgt)), self.position_bias(len(src), len(tgt))
        states = torch.cat([x, y])
        if self.config.architecture == "prefix-lm-toponly":
            source, target = slice(0, len(src)), slice(len(src), None)
            top = self.climb(x, x[:0], mask[source, source], bias[:, source, source])
            states = torch.cat([top, self.climb(y, top, mask[target], bias[:, target])])
        else:
            states = self.climb(states, x[:0], mask, bias)
        if self.config.norm_order == "pre":
            states = self.norm("stack.norm", states)
        return (states @ self.of("softmax.weight", "embedding.weight").T).log_softmax(-1)

    def of(self, name: str, otherwise: str) -> Tensor:
        return self.weights.get(name, self.weights[otherwise])

    def mask(self, src_len: int, tgt_len: int) -> Tensor:
        """M(i, j), i and j from 1 (eqs. 4 and 5)."""
        total = src_len + tgt_len
        causal = self.config.architecture in ("causal-lm", "causal-lm-tgtonly")
        mask = torch.zeros(total, total, dtype=torch.bool)
        for i in range(1, total + 1):
            for j in range(1, total + 1):
                mask[i - 1, j - 1] = i >= j or (not causal and j <= src_len)
        return mask

    def position_bias(self, src_len: int, tgt_len: int) -> Tensor:
        """`(heads, n, n)`: none between a target and a source, whose positions are counted apart."""
        total = src_len + tgt_len
        bias = torch.zeros(self.config.num_heads, total, total, dtype=torch.float64)
        if self.config.positions != "relative":
            return bias
        bidirectional = self.config.architecture in ("prefix-lm", "prefix-lm-toponly")
        for i in range(total):
            for j in range(total):
                if (i < src_len) == (j < src_len):
                    number = bucket(j - i, bidirectional=bidirectional)
                    bias[:, i, j] = self.weights["stack.position_bias.weight"][number]
        return bias

    def embed(self, tokens: list[int], name: str) -> Tensor:
        states = self.of(name, "embedding.weight")[tokens]
        if self.config.embeddings in ("tied", "tied-target"):
            states = states * math.sqrt(self.config.d_model)
        if self.config.positions != "relative":
            states = states + sinusoids(len(tokens), self.config)
        return states

    def climb(self, x: Tensor, source: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
        """Take `x` through all layers, each of which sees `source` and then its own states."""
        for number in range(self.config.decoder_layers):
            layer = f"stack.layers.{number}."
            below = torch.cat([source, x])
            if self.config.norm_order == "pre":
                below = self.norm(layer + "attention_norm", below)
                x = x + self.attention(layer + "attention.", below[len(source) :], below, mask, bias)
                x = x + self.feed_forward(layer + "feed_forward.", self.norm(layer + "feed_forward_norm", x))
            else:
                x = x + self.attention(layer + "attention.", x, below, mask, bias)
                x = self.norm(layer + "attention_norm", x)
                x = x + self.feed_forward(layer + "feed_forward.", x)
                x = self.norm(layer + "feed_forward_norm", x)
        return x

    def attention(self, name: str, queries: Tensor, below: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
        q, k, v = self.map(name + "q", queries), self.map(name + "k", below), self.map(name + "v", below)
        width, attended = self.config.resolved_head_dim, []
        scale = math.sqrt(width) if self.config.scaled_attention else 1.0
        for head in range(self.config.num_heads):
            part = slice(head * width, (head + 1) * width)
            scores = q[:, part] @ k[:, part].T / scale + bias[head]
            attended.append(scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v[:, part])
        return self.map(name + "o", torch.cat(attended, dim=1))

    def feed_forward(self, name: str, x: Tensor) -> Tensor:
        if self.config.feed_forward == "relu":
            return self.map(name + "wo", self.map(name + "wi", x).clamp(min=0))
        inner = gelu(self.map(name + "wi_0", x), approximate="tanh") * self.map(name + "wi_1", x)
        return self.map(name + "wo", inner)

    def map(self, name: str, x: Tensor) -> Tensor:
        x = x @ self.weights[name + ".weight"].T
        return x + self.weights[name + ".bias"] if self.config.biases else x

    def norm(self, name: str, x: Tensor) -> Tensor:
        weight = self.weights[name + ".weight"]
        if self.config.norm == "layer":
            centred = x - x.mean(1, keepdim=True)
            return (
                weight * centred / (centred.square().mean(1, keepdim=True) + self.config.norm_epsilon).sqrt()
                + (self.weights[name + ".bias"])
            )
        return weight * x / (x.square().mean(1, keepdim=True) + self.config.norm_epsilon).sqrt()


def bucket(distance: int, *, bidirectional: bool) -> int:
    """T5's: what lies ahead has half of the 32 or bucket 0; half are exact, half logarithmic up to 128."""
    buckets = 16 if bidirectional else 32
    first = 16 if bidirectional and distance > 0 else 0
    distance = abs(distance) if bidirectional else max(0, -distance)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    logarithmic = math.log(distance / exact) / math.log(128 / exact) * (buckets - exact)
    return first + min(buckets - 1, exact + int(logarithmic))


def sinusoids(length: int, config: ModelConfig) -> Tensor:
    half, first = config.d_model // 2, 0
    rates = [10_000 ** (-i / half) for i in range(half)]
    if config.positions == "sinusoidal-fairseq":
        rates, first = [10_000 ** (-i / (half - 1)) for i in range(half)], 1
    rows = [
        [math.sin(position * rate) for rate in rates] + [math.cos(position * rate) for rate in rates]
        for position in range(first, first + length)
    ]
    return torch.tensor(rows, dtype=torch.float64)


def random_model(config: ModelConfig) -> TranslationModel:
    """A model whose norms and biases are no 1 and 0 that would hide them."""
    model = build_model(config, VOCAB_SIZE).eval()
    initialise(model, seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return model


def random_pairs() -> list[tuple[list[int], list[int]]]:
    generator = torch.Generator().manual_seed(3)

    def sentence(length: int) -> list[int]:
        return torch.randint(1, VOCAB_SIZE, (length,), generator=generator).tolist()

    return [(sentence(src_len), sentence(tgt_len)) for src_len, tgt_len in PAIR_LENGTHS]


def padded(sentences: list[list[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(tokens) for tokens in sentences], batch_first=True)


PAIRS = random_pairs()
SRC, TGT = padded([src for src, _ in PAIRS]), padded([tgt for _, tgt in PAIRS])


@pytest.mark.parametrize("parts", CONFIGS)
@pytest.mark.parametrize("architecture", LANGUAGE_MODELS)
def test_logits_are_those_of_the_equations(architecture: Architecture, parts: str) -> None:
    model = random_model(replace(CONFIGS[parts], architecture=architecture))

    def log_probs() -> Tensor:
        return model.logits(SRC, TGT).log_softmax(-1)

    actual, atol = log_probs(), tolerance(model, log_probs)
    reference = Reference(model)
    for row, (src, tgt) in enumerate(PAIRS):
        expected = reference.log_probs(src, tgt)[len(src) :].float()
        torch.testing.assert_close(actual[row, : len(tgt)], expected, rtol=0, atol=atol)


@pytest.mark.parametrize("parts", ["t5", "vanilla"])
@pytest.mark.parametrize("architecture", LANGUAGE_MODELS)
def test_losses_are_those_of_the_equations(architecture: Architecture, parts: str) -> None:
    model = random_model(replace(CONFIGS[parts], architecture=architecture))
    sentences = Sentences.from_padded(SRC), Sentences.from_padded(TGT)
    objective, pair_nats, _ = model(*sentences)
    of_source, of_target = [], []
    for src, tgt in PAIRS:
        nats = -Reference(model).log_probs(src, tgt).float()
        # The source's first token is given, and its last one predicts nothing.
        of_source.append(sum(nats[i, src[i + 1]] for i in range(len(src) - 1)))
        of_target.append(sum(nats[len(src) + i, token] for i, token in enumerate(tgt)))
    assert_close(pair_nats, torch.stack(of_target), model, lambda: model(*sentences).pair_nats)
    counted = sum(of_target) + (sum(of_source) if architecture == "causal-lm" else 0)
    assert_close(objective, counted, model, lambda: model(*sentences).objective)


def test_tgtonly_is_a_causal_lm_but_for_its_loss() -> None:
    of_all, of_target = (
        random_model(replace(T5, architecture=name)) for name in ("causal-lm", "causal-lm-tgtonly")
    )
    assert torch.equal(of_all.logits(SRC, TGT), of_target.logits(SRC, TGT))
    batch = Sentences.from_padded(SRC), Sentences.from_padded(TGT)
    assert of_all(*batch).objective > of_target(*batch).objective
    torch.testing.assert_close(of_all(*batch).pair_nats, of_target(*batch).pair_nats)


@pytest.mark.parametrize(
    ("architecture", "embeddings", "sharer"),
    [
        ("encdec", "shared", 'embeddings = "shared"'),
        ("prefix-lm", "tied", 'embeddings = "tied"'),
        ("causal-lm", "separate", "causal-lm"),
        ("causal-lm", "tied-target", "causal-lm"),
    ],
)
def test_a_shared_vocabulary_has_one_size(architecture: Architecture, embeddings: str, sharer: str) -> None:
    config = replace(T5, architecture=architecture, embeddings=embeddings)
    build_model(config, 20, src_vocab_size=20)
    with pytest.raises(ValueError, match="src_vocab_size") as error:
        build_model(config, 20, src_vocab_size=21)
    assert str(error.value) == f"`src_vocab_size` must be `vocab_size` (20) for {sharer}, but is 21."
