"""T5 1.1's initial scales."""

from __future__ import annotations

import torch
from torch import nn

from mnmt_model.attention import Attention
from mnmt_model.feedforward import GatedFeedForward
from mnmt_model.positions import RelativePositionBias
from mnmt_model.transformer import EncoderDecoder


def initialise(model: EncoderDecoder, seed: int) -> None:
    """Draw every weight of `model` from `seed`, in place.

    Standard deviations: embedding 1; q (d_model · head_dim)^-1/2; k, v and wi d_model^-1/2;
    o (heads · head_dim)^-1/2; wo d_ff^-1/2; softmax and relative bias d_model^-1/2. Norm scales are 1.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(weight: nn.Parameter | torch.Tensor, variance: float) -> None:
        nn.init.normal_(weight, std=variance**0.5, generator=generator)

    shape = model.shape
    normal(model.embedding.weight, 1.0)
    normal(model.softmax.weight, 1 / shape.d_model)
    for module in model.modules():
        if isinstance(module, Attention):
            normal(module.q.weight, 1 / (shape.d_model * shape.head_dim))
            normal(module.k.weight, 1 / shape.d_model)
            normal(module.v.weight, 1 / shape.d_model)
            normal(module.o.weight, 1 / shape.d_attention)
        elif isinstance(module, GatedFeedForward):
            normal(module.wi_0.weight, 1 / shape.d_model)
            normal(module.wi_1.weight, 1 / shape.d_model)
            normal(module.wo.weight, 1 / shape.d_ff)
        elif isinstance(module, RelativePositionBias):
            normal(module.weight, 1 / shape.d_model)
