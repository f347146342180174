"""RMSNorm; dropout's masks, and where a model draws them."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import rms_norm

from mnmt_model.transformer import attention, modules
from mnmt_model.transformer.attention import Attention
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture, ModelConfig
from mnmt_model.transformer.modules import Dropout, RMSNorm, dropout_mask
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.stack import Stack
from mnmt_model.transformer.translation_model import TranslationModel

SIZE = 1_000_003  # not a multiple of the elements that a random number serves
VOCAB_SIZE = 12
PRE = ModelConfig(encoder_layers=2, decoder_layers=2, d_model=16, num_heads=2, d_ff=24)
POST = replace(
    PRE, norm="layer", norm_order="post", feed_forward="relu", positions="sinusoidal", embeddings="tied"
)
SRC = Sentences.from_padded(torch.tensor([[5, 6, 7, 1], [8, 1, 0, 0]]))
TGT = Sentences.from_padded(torch.tensor([[9, 1, 0], [4, 10, 1]]))


def drop(rate: float, x: Tensor, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    return Dropout(rate)(x)


def make_model(config: ModelConfig, dropout: float) -> TranslationModel:
    model = build_model(config, VOCAB_SIZE, dropout=dropout)
    initialise(model, seed=1)
    return model


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_elements_are_dropped_at_the_rate_and_the_mean_stays(rate: float) -> None:
    dropped = drop(rate, torch.ones(SIZE))
    five_sigma = 5 * (rate * (1 - rate) / SIZE) ** 0.5
    rounding = 1 / 65_536
    assert abs((dropped == 0).double().mean() - rate) < five_sigma + rounding
    # Unbiased whatever the rounding of the rate.
    assert abs(dropped.double().mean() - 1) < (five_sigma + rounding * five_sigma) / (1 - rate)
    remaining = dropped[dropped != 0]
    assert (remaining == remaining[0]).all()
    assert float(remaining[0]) == pytest.approx(1 / (1 - rate), rel=rounding / (1 - rate))


@pytest.mark.parametrize("rate", [1e-9, 1e-6, 1e-5, 0.99999, 0.999999, 1 - 1e-12])
def test_extreme_rates_are_the_nearest_that_drop_some_and_keep_some(rate: float) -> None:
    zeros = int((drop(rate, torch.ones(SIZE)) == 0).sum())
    few = zeros if rate < 0.5 else SIZE - zeros
    assert 0 < few < SIZE / 65_536 * 3


@pytest.mark.parametrize("lag", [*range(1, 9), 64, 65_536])
def test_neighbours_are_dropped_independently(lag: int) -> None:
    remaining = (drop(0.5, torch.ones(SIZE)) != 0).double() - 0.5
    correlation = (remaining[lag:] * remaining[:-lag]).mean() / 0.25
    assert abs(correlation) < 5 / SIZE**0.5


def test_masks_are_torchs_generators() -> None:
    x = torch.randn(100, 7)
    once, again, other = (drop(0.3, x, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    torch.manual_seed(1)
    first, second = Dropout(0.3)(x), Dropout(0.3)(x)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gradients_pass_what_is_kept(dtype: torch.dtype) -> None:
    x = torch.ones(3, 50, dtype=dtype, requires_grad=True)
    dropped = drop(0.5, x)
    dropped.sum().backward()
    assert dropped.dtype == dtype
    assert torch.equal(x.grad, dropped)
    assert set(dropped.flatten().tolist()) == {0, 2}


@pytest.mark.parametrize("shape", [(0, 4), (1,), (2, 3, 5)])
def test_any_shape_is_taken(shape: tuple[int, ...]) -> None:
    assert Dropout(0.5)(torch.ones(shape)).shape == shape


def test_nothing_is_dropped_in_evaluation_or_at_rate_zero() -> None:
    x = torch.randn(4, 5)
    assert Dropout(0.9).eval()(x) is x
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize("config", [PRE, POST], ids=["pre", "post"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_model_drops_in_training_only(architecture: Architecture, config: ModelConfig) -> None:
    config = config_of(architecture, config)
    without, dropping = make_model(config, 0.0), make_model(config, 0.5)
    expected = without(SRC, TGT).objective
    assert not torch.isclose(dropping(SRC, TGT).objective, expected)
    assert torch.equal(dropping.eval()(SRC, TGT).objective, expected)


def config_of(architecture: Architecture, config: ModelConfig) -> ModelConfig:
    layers = config.encoder_layers if architecture == "encdec" else None
    return replace(config, architecture=architecture, encoder_layers=layers)


# Of each layer: attention weights, inner activations, and the output of each sublayer.
ENCODER_LAYER, DECODER_LAYER = 1 + 1 + 2, 2 + 1 + 3


@pytest.mark.parametrize(
    ("architecture", "times"),
    [
        ("encdec", 2 * (ENCODER_LAYER + DECODER_LAYER) + 2),
        # Sources and targets attend apart.
        ("prefix-lm", 2 * (ENCODER_LAYER + 1) + 1),
        ("prefix-lm-toponly", 2 * 2 * ENCODER_LAYER + 2),
    ],
)
@pytest.mark.parametrize("config", [PRE, POST], ids=["pre", "post"])
def test_where_a_model_drops(
    architecture: Architecture, times: int, config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Besides layers, the embeddings of each pass of a stack, and what the last norms give out."""
    model = make_model(config_of(architecture, config), 0.1)
    shapes = []

    def record(x: Tensor, rate: float) -> Tensor:
        shapes.append(x.shape)
        return dropout_mask(x, rate)

    for module in (modules, attention):
        monkeypatch.setattr(module, "dropout_mask", record)
    model(SRC, TGT)
    last_norms = {"pre": 2 if architecture == "encdec" else 1, "post": 0}[config.norm_order]
    assert len(shapes) == times + last_norms


@pytest.mark.parametrize("config", [PRE, POST], ids=["pre", "post"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_layers_computed_again_draw_the_same_masks(architecture: Architecture, config: ModelConfig) -> None:
    model = make_model(config_of(architecture, config), 0.3)
    calls = []
    for each in model.modules():
        if isinstance(each, Attention):
            each.register_forward_pre_hook(lambda *call: calls.append(call))
    objective, gradients = loss_and_gradients(model)
    once = len(calls)
    for stack in model.modules():
        if isinstance(stack, Stack):
            stack.checkpointing = True
    objective_again, gradients_again = loss_and_gradients(model)
    assert len(calls) - once == 2 * once
    assert torch.equal(objective, objective_again)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradients_again[name], gradient, rtol=1e-5, atol=1e-6)


def loss_and_gradients(model: TranslationModel) -> tuple[Tensor, dict[str, Tensor]]:
    torch.manual_seed(5)
    objective = model(SRC, TGT).objective
    names, parameters = zip(*model.named_parameters(), strict=True)
    return objective, dict(zip(names, torch.autograd.grad(objective, parameters), strict=True))


@pytest.mark.parametrize("stride", [1, 2], ids=["contiguous", "strided"])
def test_the_written_gradient_of_a_norm_is_torchs(stride: int) -> None:
    norm = RMSNorm(6, 1e-3).double()
    norm.weight = nn.Parameter(torch.randn(6 * stride, dtype=torch.float64)[::stride])
    x = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    inputs, gradient = (x, norm.weight), torch.randn(5, 6, dtype=torch.float64)
    expected = rms_norm(x, (6,), norm.weight, norm.epsilon)
    torch.testing.assert_close(norm(x), expected)
    for ours, theirs in zip(
        torch.autograd.grad(norm(x), inputs, gradient),
        torch.autograd.grad(expected, inputs, gradient),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_a_norm_is_not_differentiated_twice() -> None:
    x = torch.randn(5, 6, requires_grad=True)
    (gradient,) = torch.autograd.grad(RMSNorm(6, 1e-6)(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
