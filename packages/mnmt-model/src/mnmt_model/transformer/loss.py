"""What training minimises and what evaluation reports."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from mnmt_model.transformer.routes import Balance


class Losses(NamedTuple):
    """Losses of a batch, in nats."""

    objective: Tensor
    """Scalar: what training minimises, summed over all predicted tokens."""
    pair_nats: Tensor
    """`(batch,)` -log p(target | source) of each pair, `</s>` included; not differentiated."""
    balance: Balance | None = None
    """How evenly the experts were used, of a model that has any, in training."""
