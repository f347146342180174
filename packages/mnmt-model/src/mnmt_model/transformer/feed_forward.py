"""Dense feed-forwards and their activation functions."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the customary name

from mnmt_model.transformer.modules import Dropout, Linear

FeedForward = Literal["relu", "gated-gelu", "gated-silu"]


def gate(x: Tensor, kind: FeedForward) -> Tensor:
    """Return GELU(x) in the tanh approximation (Hendrycks & Gimpel 2016), or SiLU(x)."""
    return F.gelu(x, approximate="tanh") if kind == "gated-gelu" else F.silu(x)


class GatedFeedForward(nn.Module):
    """wo(f(wi_0 x) * wi_1 x): with GELU as in T5 1.1, with SiLU as in LLaMA.

    Args:
        kind: `gated-gelu` or `gated-silu`.
        d_model: Width of the states.
        d_ff: Inner width.
        biases: Whether the maps have biases.
        dropout: Rate of the hidden states.
    """

    def __init__(self, kind: FeedForward, d_model: int, d_ff: int, *, biases: bool, dropout: float) -> None:
        super().__init__()
        self.kind = kind
        self.wi_0 = Linear(d_model, d_ff, bias=biases)
        self.wi_1 = Linear(d_model, d_ff, bias=biases)
        self.wo = Linear(d_ff, d_model, bias=biases)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(num_tokens, d_model)` to the same shape."""
        output: Tensor = self.wo(self.dropout(gate(self.wi_0(x), self.kind) * self.wi_1(x)))
        return output


class ReLUFeedForward(nn.Module):
    """wo(ReLU(wi x)), as in Vaswani et al. 2017; see `GatedFeedForward` for the arguments."""

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
    return GatedFeedForward(kind, d_model, d_ff, biases=biases, dropout=dropout)
