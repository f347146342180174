"""On a GPU nothing in a pass asks for a number, for which the host would wait."""

from typing import Any

import pytest
import torch
from random_models import VOCAB_SIZE, random_model
from torch.utils._python_dispatch import TorchDispatchMode

from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture, ModelConfig
from mnmt_model.transformer.sentences import Sentences

WAITS = ("_local_scalar_dense", "nonzero", "masked_select")
"""Operators of torch whose results, or their sizes, the host reads; so does indexing by a mask."""


class Waits(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        masks = name == "index" and any(each is not None and each.dtype == torch.bool for each in args[1])
        if name in WAITS or masks:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_pass_waits_for_nothing(architecture: Architecture) -> None:
    config = ModelConfig(architecture=architecture, decoder_layers=2, d_model=16, num_heads=2, d_ff=32)
    model = random_model(config)
    table = torch.randint(1, VOCAB_SIZE, (3, 6), generator=torch.Generator().manual_seed(0))
    table[1, 4:] = 0
    src, tgt = Sentences.from_padded(table), Sentences.from_padded(table.flip(0))
    with Waits() as waits:
        losses = model(src, tgt, pair_weights=torch.ones(3))
        losses.objective.backward()
    assert waits.names == []
