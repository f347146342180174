"""Small models with random weights, which no initial value leaves at 0 or 1."""

from __future__ import annotations

from functools import cache

import torch

from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.translation_model import TranslationModel

VOCAB_SIZE = 20


@cache
def random_model(config: ModelConfig) -> TranslationModel:
    """Return the model, the same one for the same config."""
    model = build_model(config, VOCAB_SIZE)
    initialise(model, seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model
