"""On a GPU nothing in a pass asks for a number, for which the host would wait."""

import pytest
import torch
from host_waits import host_waits
from random_models import VOCAB_SIZE, random_model

from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture, ModelConfig
from mnmt_model.transformer.sentences import Sentences


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_pass_waits_for_nothing(architecture: Architecture) -> None:
    config = ModelConfig(architecture=architecture, decoder_layers=2, d_model=16, num_heads=2, d_ff=32)
    model = random_model(config)
    table = torch.randint(1, VOCAB_SIZE, (3, 6), generator=torch.Generator().manual_seed(0))
    table[1, 4:] = 0
    src, tgt = Sentences.from_padded(table), Sentences.from_padded(table.flip(0))
    with host_waits() as waits:
        losses = model(src, tgt, pair_weights=torch.ones(3))
        losses.objective.backward()
    assert waits == []
