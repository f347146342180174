"""The experts' weights are cast once a step, and what is computed stays the same to the last bit."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from mnmt_model import TrainConfig
from mnmt_model.optim.optimizer import make_optimizer
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.experts.experts import cast_once
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.translation_model import TranslationModel

CONFIG = ModelConfig(decoder_layers=2, d_model=16, num_heads=2, d_ff=24, num_experts=4, experts_every=1)
SRC = torch.tensor([[5, 6, 7, 9, 1], [8, 1, 0, 0, 0], [3, 3, 1, 0, 0]])
TGT = torch.tensor([[7, 6, 1, 0], [9, 9, 8, 1], [4, 1, 0, 0]])
PASSES = 3


class CountedCasts(TorchDispatchMode):
    """Counts casts of float32 tensors to bfloat16, by shape."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[int, ...]] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        is_cast = function is torch.ops.aten._to_copy.default and args[0].dtype == torch.float32
        if is_cast and (kwargs or {}).get("dtype") == torch.bfloat16:
            self.counts[tuple(args[0].shape)] += 1
        return function(*args, **(kwargs or {}))


def make_model(*, checkpointing: bool = False) -> TranslationModel:
    model = build_model(CONFIG, 20, dtype=torch.bfloat16).train()
    initialise(model, seed=1)
    for stack in model.modules():
        if hasattr(stack, "checkpointing"):
            stack.checkpointing = checkpointing
    return model


def passes(model: TranslationModel) -> None:
    """Forward and backward passes of a step, whose gradients add up."""
    for _ in range(PASSES):
        model(Sentences.from_padded(SRC), Sentences.from_padded(TGT)).objective.backward()


@pytest.mark.parametrize("checkpointing", [False, True])
def test_each_weight_is_cast_once(checkpointing: bool) -> None:
    model = make_model(checkpointing=checkpointing)
    with cast_once(model), CountedCasts() as casts:
        passes(model)
    weights = [weight for mixture in model.mixtures for weight in mixture.experts.parameters()]
    assert {shape: casts.counts[shape] for shape in {tuple(weight.shape) for weight in weights}} == Counter(
        tuple(weight.shape) for weight in weights
    )


def trained(optimizer_name: str, scope: Any, *, checkpointing: bool) -> list[Tensor]:
    model = make_model(checkpointing=checkpointing)
    optimizer = make_optimizer(model, TrainConfig(optimizer=optimizer_name, learning_rate=0.05))
    for _ in range(3):
        with scope(model):
            passes(model)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return [parameter.detach() for parameter in model.parameters()]


def never(_: TranslationModel) -> AbstractContextManager[None]:
    return nullcontext()


@pytest.mark.parametrize("optimizer", ["adafactor", "adamw"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_training_is_the_same_to_the_last_bit(optimizer: str, checkpointing: bool) -> None:
    once = trained(optimizer, cast_once, checkpointing=checkpointing)
    always = trained(optimizer, never, checkpointing=checkpointing)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(once, always, strict=True))
