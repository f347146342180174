"""Multi-head attention as in T5: no biases, no 1/sqrt(head_dim), an additive bias on the scores."""

from __future__ import annotations

from torch import Tensor, nn

from mnmt_model.shape import Shape


class Attention(nn.Module):
    """Multi-head attention; projecting keys and values apart from attending lets a decoder cache them."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.num_heads = shape.num_heads
        self.q = nn.Linear(shape.d_model, shape.d_attention, bias=False)
        self.k = nn.Linear(shape.d_model, shape.d_attention, bias=False)
        self.v = nn.Linear(shape.d_model, shape.d_attention, bias=False)
        self.o = nn.Linear(shape.d_attention, shape.d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values `(batch, num_heads, len, head_dim)` of `x (batch, len, d_model)`."""
        return self._split(self.k(x)), self._split(self.v(x))

    def attend(self, x: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
        """Attend from `x (batch, query_len, d_model)` to projected keys and values.

        Args:
            x: the queries' states.
            keys: `(batch, num_heads, key_len, head_dim)`.
            values: like `keys`.
            bias: added to the scores `(batch, num_heads, query_len, key_len)`, broadcast; -inf hides a key.

        Returns:
            `(batch, query_len, d_model)`.
        """
        scores = self._split(self.q(x)) @ keys.transpose(-1, -2)
        if bias is not None:
            scores = scores + bias
        weights = self.dropout(scores.float().softmax(-1).to(values.dtype))
        merged = (weights @ values).transpose(1, 2).flatten(2)
        output: Tensor = self.o(merged)
        return output

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)
