"""Feed-forwards of one matrix for all tokens."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.modules import Dropout, Linear, map_jointly
from mnmt_model.transformer.operations import Unit, gated

FeedForward = Literal["relu", "gated-gelu", "gated-silu"]


class GatedFeedForward(nn.Module):
    """wo(f(wi_0 x) * wi_1 x): with the tanh approximation of GELU that of T5 1.1, with SiLU that of LLaMA.

    Args:
        d_model: Width of the states.
        d_ff: Inner width.
        unit: f.
        biases: Whether the maps have biases.
        dropout: Rate of the hidden states.
    """

    joint_maps = (("wi_0", "wi_1"),)

    def __init__(self, d_model: int, d_ff: int, *, unit: Unit, biases: bool, dropout: float) -> None:
        super().__init__()
        self.unit: Unit = unit
        self.wi_0 = Linear(d_model, d_ff, bias=biases)
        self.wi_1 = Linear(d_model, d_ff, bias=biases)
        self.wo = Linear(d_ff, d_model, bias=biases)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(num_tokens, d_model)` to the same shape."""
        both = map_jointly(x, [self.wi_0, self.wi_1])
        output: Tensor = self.wo(gated(both, self.unit, self.dropout.training_rate, self.dropout.products))
        return output


class ReLUFeedForward(nn.Module):
    """wo(ReLU(wi x)), as in Vaswani et al. 2017; the arguments are those of `GatedFeedForward`."""

    def __init__(self, d_model: int, d_ff: int, *, biases: bool, dropout: float) -> None:
        super().__init__()
        self.wi = Linear(d_model, d_ff, bias=biases)
        self.wo = Linear(d_ff, d_model, bias=biases)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(num_tokens, d_model)` to the same shape."""
        output: Tensor = self.wo(self.dropout(F.relu(self.wi(x))))
        return output


def make_feed_forward(
    kind: FeedForward, d_model: int, d_ff: int, *, biases: bool, dropout: float
) -> GatedFeedForward | ReLUFeedForward:
    """Return a feed-forward of a kind; see `GatedFeedForward`."""
    if kind == "relu":
        return ReLUFeedForward(d_model, d_ff, biases=biases, dropout=dropout)
    unit: Unit = "gelu" if kind == "gated-gelu" else "silu"
    return GatedFeedForward(d_model, d_ff, unit=unit, biases=biases, dropout=dropout)
