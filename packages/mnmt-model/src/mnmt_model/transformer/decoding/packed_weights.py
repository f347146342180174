"""A target stack's weights, laid out for the steps of decoding in C++."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from mnmt_model.transformer import native
from mnmt_model.transformer.feed_forward import GatedFeedForward
from mnmt_model.transformer.modules import LayerNorm, Linear, RMSNorm
from mnmt_model.transformer.stack import Stack
from mnmt_model.transformer.translation_model import TranslationModel

PANEL = 64
"""A multiple of the columns that `packed_product.h` lays together on any processor."""

BIAS_STEP = 64
"""Tables of position biases are made for multiples of so many steps."""


@dataclass(kw_only=True, eq=False)
class PackedWeights:
    """The weights of a model's target stack and softmax, which must not change meanwhile."""

    stack: Stack
    """The stack, for its position bias."""
    layers: Tensor
    """`(num_layers, …)` int64, addresses in the order of `LayerWeights` in decoding.cpp."""
    last_norm: tuple[Tensor | None, Tensor | None]
    """The weight and bias of the last norm."""
    softmax: Tensor
    addressed: list[Tensor | None]
    """The tensors whose addresses these are."""
    versions: tuple[tuple[int, int], ...]
    """Tells these weights from later ones."""
    _biases: dict[int, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, model: TranslationModel) -> PackedWeights:
        """Lay out the weights of a model on the CPU."""
        stack: Any = model.target_stack
        rows = [list(_layer_tensors(layer, stack.has_cross_attention)) for layer in stack.layers]
        addresses = [[0 if each is None else each.data_ptr() for each in row] for row in rows]
        return cls(
            stack=stack,
            layers=torch.tensor(addresses),
            last_norm=_norm(stack.norm) if hasattr(stack, "norm") else (None, None),
            softmax=_packed(model.softmax_weight.detach()),
            addressed=[tensor for row in rows for tensor in row],
            versions=versions(model),
        )

    def position_bias(self, steps: int) -> Tensor | None:
        """Return the bias `(num_heads, width)` of distances width - 1 to 0, where width ≥ steps, if any."""
        if not hasattr(self.stack, "position_bias"):
            return None
        width = -(-steps // BIAS_STEP) * BIAS_STEP
        if width not in self._biases:
            bias = self.stack.position_bias(1, width)[:, 0]
            self._biases[width] = bias.detach().contiguous()
        return self._biases[width]


def versions(model: TranslationModel) -> tuple[tuple[int, int], ...]:
    """Return what changes when a weight of the model does."""
    return tuple(
        (weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in model.parameters()
    )


def _layer_tensors(layer: Any, cross: bool) -> Iterator[Tensor | None]:
    """Yield the tensors of a layer in the order of `LayerWeights` in decoding.cpp."""
    attention, feed_forward = layer.attention, layer.feed_forward
    yield from _norm(layer.attention_norm)
    yield from _map(attention.q, attention.k, attention.v)
    yield from _map(attention.o)
    if cross:
        yield from (*_norm(layer.cross_norm), *_map(layer.cross_attention.q), *_map(layer.cross_attention.o))
    else:
        yield from (None,) * 6
    yield from _norm(layer.feed_forward_norm)
    if isinstance(feed_forward, GatedFeedForward):
        yield from _map(feed_forward.wi_0, feed_forward.wi_1)
    else:
        yield from _map(feed_forward.wi)
    yield from _map(feed_forward.wo)


def _norm(norm: RMSNorm | LayerNorm) -> tuple[Tensor, Tensor | None]:
    """Return a norm's weight and bias."""
    bias = norm.bias.detach().contiguous() if isinstance(norm, LayerNorm) else None
    return norm.weight.detach().contiguous(), bias


def _map(*maps: Linear) -> tuple[Tensor, Tensor | None]:
    """Return the packed matrix of several maps' outputs side by side, and their biases."""
    bias = torch.cat([each.bias.detach() for each in maps]) if maps[0].has_bias else None
    return _packed(torch.cat([each.weight.detach() for each in maps])), bias


def _packed(weight: Tensor) -> Tensor:
    """Return a matrix `(columns, inner)` as `pack` in packed_product.h lays it out."""
    columns, inner = weight.shape
    packed = weight.new_empty(-(-columns // PANEL) * PANEL * inner)
    native.run("pack", weight.contiguous(), packed, columns, inner)
    return packed
