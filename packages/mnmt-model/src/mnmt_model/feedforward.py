"""T5 1.1's gated feed-forward."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.shape import Shape


class GatedFeedForward(nn.Module):
    """wo(GELU(wi_0 x) * wi_1 x), with the tanh approximation of GELU and no biases."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.wi_0 = nn.Linear(shape.d_model, shape.d_ff, bias=False)
        self.wi_1 = nn.Linear(shape.d_model, shape.d_ff, bias=False)
        self.wo = nn.Linear(shape.d_ff, shape.d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(batch, len, d_model)` to the same shape."""
        hidden = F.gelu(self.wi_0(x), approximate="tanh") * self.wi_1(x)
        output: Tensor = self.wo(self.dropout(hidden))
        return output
