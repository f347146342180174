"""Attention in C++ on sentences without padding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mnmt_model.transformer import native
from mnmt_model.transformer.operations.attention import attention
from mnmt_model.transformer.operations.dropout import draw_seed, threshold
from mnmt_model.transformer.operations.eager import has_gradient
from mnmt_model.transformer.products import Products, Shape, nearest_power
from mnmt_model.transformer.sentences import Sentences

MAX_LANES = 16
"""The most numbers of a vector, in small_products.h."""

PART_TOKENS = 512
"""Tokens of a part, at least about; whichever thread computes it, a part's sums are in the same order."""

MAX_PARTS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Spans:
    """Which rows attend to which: the queries of a sentence to its keys."""

    queries: Tensor
    """`(sentences + 1,)` int64, the first query of each sentence, and the number of all."""
    keys: Tensor
    """`(sentences + 1,)` int64, the first key of each sentence, and the number of all."""
    width: int
    """The most keys of a sentence."""
    bias: Tensor | None
    """`(2 width - 1, num_heads)`, what is added to the scores at each distance of a key from its query, from
    1 - width; by default 0. Queries and keys are then of the same tokens."""
    is_causal: bool
    """Whether a query sees only the key of its own token and those before it."""

    @classmethod
    def between(
        cls, queries: Sentences, keys: Sentences, *, bias: Tensor | None = None, is_causal: bool = False
    ) -> Spans:
        """Return the spans of sentences that attend to others, or to themselves."""
        return cls(queries=queries.starts, keys=keys.starts, width=keys.width, bias=bias, is_causal=is_causal)


def has_spans(
    queries: Sentences, keys: Sentences, like: Tensor, products: Products, *, num_heads: int, head_dim: int
) -> bool:
    """Return whether attention is our own in C++.

    Args:
        queries: The sentences that attend.
        keys: The sentences that they attend to.
        like: States of the queries.
        products: The ways of operations.
        num_heads: The number of heads.
        head_dim: The width of each.
    """
    if not has_gradient(like):
        return False
    length = 1 << nearest_power(keys.num_tokens / max(1, keys.batch))
    return products.is_native("attention", like, number=num_heads, inner=head_dim, columns=length)


def ragged_attention(
    queries: Tensor, keys_values: Tensor | None, spans: Spans, *, num_heads: int, scale: float, rate: float
) -> Tensor:
    """Return dropout(softmax(scale q kᵀ + bias)) v, `(rows, num_heads * head_dim)`, heads side by side.

    Dropout's mask is a function of a seed that torch's generator draws. It is nowhere in memory.

    Args:
        queries: `(rows, num_heads * head_dim)`; or, without `keys_values`, three times as wide: queries, keys
            and values side by side.
        keys_values: `(key rows, 2 * num_heads * head_dim)`, keys and then values.
        spans: Which rows attend to which.
        num_heads: The number of heads.
        scale: The factor of q kᵀ.
        rate: Dropout's rate.
    """
    seed = draw_seed() if rate else 0
    y: Tensor = _RaggedAttention.apply(  # type: ignore[no-untyped-call]
        queries, keys_values, spans.bias, spans, (num_heads, scale, threshold(rate)), seed
    )
    return y


def attention_work(shape: Shape) -> Callable[[Products], object]:
    """Return what computes self-attention of such a shape, without dropout, and its gradients.

    Lengths lie between half and one and a half of the shape's.
    """
    heads, head_dim, dtype = shape.number, shape.inner, getattr(torch, shape.dtype)
    lengths = _lengths(shape.rows, shape.columns)
    sentences = Sentences.from_padded((torch.arange(int(lengths.max())) < lengths[:, None]).long())
    generator = torch.Generator().manual_seed(0)
    draw = torch.randn(sentences.num_tokens, 4 * heads * head_dim, generator=generator, dtype=dtype)
    gradient, outputs = draw[:, : heads * head_dim], draw[:, heads * head_dim :].contiguous()
    outputs.requires_grad_()
    bias = torch.zeros(2 * sentences.width - 1, heads, dtype=dtype, requires_grad=True)

    def compute(products: Products) -> object:
        if products.is_native("attention", outputs, number=heads, inner=head_dim, columns=shape.columns):
            spans = Spans.between(sentences, sentences, bias=bias)
            y = ragged_attention(outputs, None, spans, num_heads=heads, scale=1.0, rate=0.0)
        else:
            y = _padded_attention(outputs, sentences, bias)
        return torch.autograd.grad(y, (outputs, bias), gradient)

    return compute


def _lengths(rows: int, length: int) -> Tensor:
    """Return the lengths of sentences with about so many rows."""
    number = max(1, rows // length)
    return (length // 2 + (torch.arange(number) * 7919) % (length + 1)).clamp_(min=1)


def _padded_attention(outputs: Tensor, sentences: Sentences, bias: Tensor) -> Tensor:
    """Return self-attention of `outputs`, queries, keys and values side by side, as patterns compute it."""
    batch, width, heads = sentences.batch, sentences.width, bias.size(1)
    table = sentences.pad(outputs).view(batch, width, 3, heads, -1).permute(2, 0, 3, 1, 4)
    places = torch.arange(width)
    positions = bias[places - places[:, None] + width - 1].permute(2, 0, 1)
    padding = torch.zeros(batch, 1, 1, width, dtype=bias.dtype)
    padding.masked_fill_(sentences.padding_mask[:, None, None], -1e9)
    attended = attention(table[0], table[1], table[2], positions + padding, scale=1.0, mask=None)
    return sentences.flatten(attended.transpose(1, 2).flatten(2))


class _RaggedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys_values: Tensor | None,
        bias: Tensor | None,
        spans: Spans,
        options: tuple[int, float, int],
        seed: int,
    ) -> Tensor:
        heads, scale, least = options
        queries = queries.contiguous()
        keys_values = None if keys_values is None else keys_values.contiguous()
        q, k, v = _split(queries, keys_values)
        d_attention = v.size(1)
        y = q.new_empty(len(q), d_attention)
        width = -(-spans.width // MAX_LANES) * MAX_LANES
        weights = q.new_empty(len(q) * heads * width)
        ctx.sizes = (
            len(spans.queries) - 1,
            heads,
            d_attention // heads,
            q.stride(0),
            k.stride(0),
            spans.width,
        )
        ctx.spans, ctx.options = spans, (int(spans.is_causal), float(scale), least)
        bias = None if bias is None else bias.contiguous()
        native.run(
            "attention",
            *(q, k, v, bias, spans.queries, spans.keys, y, weights),
            _part(spans),
            *ctx.sizes,
            *ctx.options,
            seed,
        )
        ctx.save_for_backward(queries, keys_values, weights)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys_values, weights = ctx.saved_tensors
        spans: Spans = ctx.spans
        grad_queries = torch.empty_like(queries)
        grad_keys_values = None if keys_values is None else torch.empty_like(keys_values)
        size, grad_bias = _part(spans), None
        if ctx.needs_input_grad[2]:
            size, grad_bias = _parts(spans, ctx.sizes, like=queries)
        native.run(
            "attention_gradient",
            gradients[0].contiguous(),
            *_split(queries, keys_values),
            weights,
            spans.queries,
            spans.keys,
            *_split(grad_queries, grad_keys_values),
            grad_bias,
            size,
            *ctx.sizes,
            *ctx.options,
        )
        return (
            grad_queries,
            grad_keys_values,
            None if grad_bias is None else grad_bias.sum(0),
            None,
            None,
            None,
        )


def _split(queries: Tensor, keys_values: Tensor | None) -> tuple[Tensor, ...]:
    """Return queries, keys and values."""
    if keys_values is None:
        return queries.chunk(3, dim=1)
    return queries, *keys_values.chunk(2, dim=1)


def _part(spans: Spans) -> int:
    """Return the number of sentences of a part."""
    return -(-PART_TOKENS // max(1, spans.width))


def _parts(spans: Spans, sizes: tuple[int, ...], like: Tensor) -> tuple[int, Tensor]:
    """Return how many sentences share a sum of the bias's gradient, and the memory of these sums.

    A part writes as many numbers as the longest sentence has scores, which shall be less than it reads.
    """
    sentences, heads, width = sizes[0], sizes[1], spans.width
    scores = len(like) ** 2 / max(1, sentences)
    parts = max(1, min(MAX_PARTS, int(scores / (2 * width * width))))
    size = max(_part(spans), -(-sentences // parts))
    return size, like.new_empty(-(-sentences // size), 2 * width - 1, heads)
