"""States of bfloat16, and layers that are compiled."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.backends.debugging import aot_eager

from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.layer import Layer
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, Architecture, ModelConfig
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.stack import Stack
from mnmt_model.transformer.translation_model import TranslationModel

VOCAB_SIZE = 50
T5 = ModelConfig(decoder_layers=2, d_model=32, num_heads=4, d_ff=64)
VANILLA = replace(T5, **VASWANI)
PARTS = {"t5": T5, "vanilla": VANILLA}


def make_model(
    config: ModelConfig, dtype: torch.dtype = torch.float32, *, dropout: float = 0.0
) -> TranslationModel:
    model = build_model(config, VOCAB_SIZE, dropout=dropout, dtype=dtype)
    initialise(model, seed=1)
    return model


def batch(src_len: int, tgt_len: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(src_len)
    src, tgt = (
        torch.randint(1, VOCAB_SIZE, (6, length), generator=generator) for length in (src_len, tgt_len)
    )
    src[1, 3:], tgt[2, 2:] = 0, 0
    return src, tgt


def loss_and_gradients(model: TranslationModel, ids: tuple[Tensor, Tensor]) -> tuple[Tensor, list[Tensor]]:
    objective = model(*map(Sentences.from_padded, ids), label_smoothing=0.1, z_loss=1e-4).objective
    return objective.detach(), list(torch.autograd.grad(objective, list(model.parameters())))


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_states_of_bfloat16_change_losses_and_gradients_little(
    architecture: Architecture, parts: str
) -> None:
    config, ids = replace(PARTS[parts], architecture=architecture), batch(12, 9)
    exact, rounded = make_model(config), make_model(config, torch.bfloat16)
    assert rounded.logits(*ids).dtype == torch.bfloat16
    expected, expected_gradients = loss_and_gradients(exact, ids)
    objective, gradients = loss_and_gradients(rounded, ids)
    assert objective.dtype == torch.float32
    torch.testing.assert_close(objective, expected, rtol=2e-2, atol=0)
    assert not torch.equal(objective, expected)
    for gradient, reference in zip(gradients, expected_gradients, strict=True):
        assert gradient.dtype == torch.float32
        assert gradient.isfinite().all()
        # Keys' biases change no attention weight, so that their gradients are rounding errors.
        assert (gradient - reference).norm() < 0.1 * reference.norm() + 0.1
    pair_nats = rounded(*map(Sentences.from_padded, ids)).pair_nats
    assert pair_nats.dtype == torch.float32
    torch.testing.assert_close(
        pair_nats, exact(*map(Sentences.from_padded, ids)).pair_nats, rtol=3e-2, atol=0
    )


def compile_layers(model: TranslationModel, backend: Callable[..., Any]) -> None:
    torch.compiler.reset()
    for module in model.modules():
        if isinstance(module, Layer):
            module.compile(dynamic=True, fullgraph=True, backend=backend)


def checkpoint_layers(model: TranslationModel, checkpointing: bool) -> None:
    for module in model.modules():
        if isinstance(module, Stack):
            module.checkpointing = checkpointing


def assert_same(actual: tuple[Tensor, list[Tensor]], expected: tuple[Tensor, list[Tensor]]) -> None:
    torch.testing.assert_close(actual[0], expected[0], rtol=1e-5, atol=0)
    for gradient, reference in zip(actual[1], expected[1], strict=True):
        torch.testing.assert_close(gradient, reference, rtol=1e-4, atol=1e-4)


# Torch's compiler calls what torch itself deprecates, and mutes other warnings only after they were raised.
compiler = pytest.mark.filterwarnings("ignore")


@compiler
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["encdec", "causal-lm"])
def test_a_compiled_model_computes_the_same_with_the_same_masks(architecture: Architecture) -> None:
    config = replace(T5, architecture=architecture)
    plain, compiled = make_model(config, dropout=0.3), make_model(config, dropout=0.3)
    traces = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        traces.append(graph)
        return aot_eager(graph, inputs)

    torch.compiler.reset()
    compiled.compile(dynamic=True, backend=backend)
    counts = []
    for ids in [batch(12, 9), batch(7, 11), *(batch(5 + size, 14 - size) for size in range(10))]:
        torch.manual_seed(5)
        expected = loss_and_gradients(plain, ids)
        torch.manual_seed(5)
        assert_same(loss_and_gradients(compiled, ids), expected)
        counts.append(len(traces))
    # Otherwise every new number of tokens would be compiled anew, until torch gives up.
    assert 0 < counts[3] == counts[-1]


@compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "checkpointing"), [("encdec", False), ("prefix-lm-toponly", False), ("causal-lm", True)]
)
def test_compiled_layers_are_traced_whole_and_once_for_all(
    architecture: Architecture, checkpointing: bool
) -> None:
    config = replace(T5, architecture=architecture, decoder_layers=5)
    plain, compiled = make_model(config), make_model(config)
    checkpoint_layers(compiled, checkpointing)
    traces = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        traces.append(graph)
        return aot_eager(graph, inputs)

    compile_layers(compiled, backend)
    for ids in (batch(12, 9), batch(7, 11)):
        assert_same(loss_and_gradients(compiled, ids), loss_and_gradients(plain, ids))
    # For an encoder's layers and a decoder's, the first and the others, but not for each or for each size.
    assert 0 < len(traces) < 5


@compiler
@pytest.mark.slow
def test_compiled_layers_computed_again_draw_the_same_masks() -> None:
    compiled = make_model(replace(T5, architecture="prefix-lm"), dropout=0.3)
    compile_layers(compiled, aot_eager)
    torch.manual_seed(5)
    once = loss_and_gradients(compiled, batch(12, 9))
    checkpoint_layers(compiled, True)
    torch.manual_seed(5)
    assert_same(loss_and_gradients(compiled, batch(12, 9)), once)
    torch.manual_seed(6)
    assert not torch.isclose(loss_and_gradients(compiled, batch(12, 9))[0], once[0])
