"""Initial weights: at T5 1.1's scales, or those of another run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn

from mnmt_data.prepared import Prepared
from mnmt_model import checkpoint
from mnmt_model.attention import Attention
from mnmt_model.errors import RunError
from mnmt_model.feedforward import GatedFeedForward
from mnmt_model.positions import RelativePositionBias
from mnmt_model.run_record import read_run
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


def initialise_from(model: EncoderDecoder, path: Path, data: Prepared) -> None:
    """Give `model` the weights of another run, in place.

    Args:
        model: of the shape of that run.
        path: the run's folder, for its newest checkpoint, or a checkpoint in it.
        data: what the model will be trained on.

    Raises:
        RunError: if there is no checkpoint, or its run has another shape or another vocabulary.
    """
    saved = checkpoint.newest(path)
    run = saved.parent.parent
    _check_shape(model, run)
    checkpoint.check_vocabulary(run, data)
    checkpoint.load_model(saved, model)


def _check_shape(model: EncoderDecoder, run: Path) -> None:
    ours, theirs = asdict(model.shape), read_run(run)["config"]["model"]
    for name, value in ours.items():
        if theirs.get(name) != value:
            needed = ", ".join(f"{key} = {theirs[key]}" for key in ours if key in theirs)
            raise RunError(
                f"{run}: is of another `{name}` than {value}; to start from it a model needs {needed}"
            )
