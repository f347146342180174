"""The experts of a mixture: their weights and computation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch._compile import _disable_dynamo
from torch.nn import functional as F  # noqa: N812 - the customary name

from mnmt_model.distributed.shards import local
from mnmt_model.transformer.experts.operators import extension, operators
from mnmt_model.transformer.experts.ranks import ExpertRanks
from mnmt_model.transformer.feed_forward import gate
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Dropout

if TYPE_CHECKING:
    from mnmt_model.transformer.experts.operators import Routing


class Experts(nn.Module):
    """FFN_e(x) = wo_e f(wi_e x), for every expert e (Lepikhin et al. 2021, GShard, eq. 2).

    For a gated f, `wi` has two linear maps side by side: with SiLU, FFN_e(x) = wo_e (SiLU(a) * b), where a is
    the first half of wi_e x, and b the second.

    Args:
        config: Widths, number of experts and their f.
        dropout: Rate of the hidden states.
        ranks: The processes that hold the experts; each has only its experts' weights.
    """

    def __init__(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        super().__init__()
        self.ranks, self.kind = ranks, config.expert_feed_forward
        self.local_experts = ranks.local_experts(config.num_experts)
        width = config.d_ff if self.kind == "relu" else 2 * config.d_ff
        wi = torch.empty(len(self.local_experts), config.d_model, width)
        wo = torch.empty(len(self.local_experts), config.d_ff, config.d_model)
        self.wi, self.wo = (nn.Parameter(ranks.distribute(weight)) for weight in (wi, wo))
        self.casts = CastCache()
        self.dropout = Dropout(dropout)

    def forward(self, buffers: Tensor) -> Tensor:
        """Map `buffers (num_experts, rows, d_model)` to the same shape, each row by its expert."""
        if self.ranks.size == 1:
            return self._apply_local(buffers)
        exchanged: Tensor = extension().apply_experts(
            self._apply_local, buffers, group=self.ranks.group, num_chunks=self.ranks.chunks
        )
        return exchanged

    @_disable_dynamo  # as torch.compiler.disable, but importing the compiler only when it is called
    def ragged(self, rows: Tensor, ends: Tensor) -> Tensor:
        """Map `rows (num_rows, d_model)` to the same shape, each by its expert in this process.

        Args:
            rows: The rows, ordered by expert.
            ends: `(num_experts,)` int32, the row after the last of each expert. Rows beyond are undefined in
                the result.
        """
        # Not compiled, since torch's compiler supports ragged products only in bfloat16.
        return self._apply_local(rows, ends)

    @_disable_dynamo
    def exchange(self, x: Tensor, routing: Routing) -> Tensor:
        """Map tokens `x (num_tokens, d_model)` to the weighted sums of their experts in all processes."""
        ranks = self.ranks
        sums: Tensor = operators(x.device.type).apply_experts_to_tokens(
            self._apply_local, x[None], routing, group=ranks.group, num_chunks=ranks.chunks
        )
        return sums.squeeze(0)

    def _apply_local(self, x: Tensor, ends: Tensor | None = None) -> Tensor:
        """Apply the experts in this process."""
        product = torch.bmm if ends is None else partial(ragged_product, ends=ends)
        wi, wo = (self.casts.cast(weight, x.dtype) for weight in (self.wi, self.wo))
        return product(self.dropout(self._activation(product(x, wi))), wo)

    def _activation(self, x: Tensor) -> Tensor:
        if self.kind == "relu":
            return x.relu()
        a, b = x.chunk(2, dim=-1)
        return gate(a, self.kind) * b


def ragged_product(x: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
    """Return the product of each row with its expert's matrix, `(rows, columns)`.

    In bfloat16 it is one kernel on GPUs of compute capability 9 and 10. Otherwise torch multiplies expert by
    expert, which waits for `ends` from the GPU.

    Args:
        x: `(rows, inner)`, the rows, ordered by expert.
        weights: `(num_experts, inner, columns)`.
        ends: `(num_experts,)` int32, the row after the last of each expert. Rows beyond are undefined in the
            result.
    """
    inner, columns = weights.shape[1:]
    step = 16 // x.element_size()
    # `grouped_mm` needs rows aligned to 16 bytes.
    missing = (-inner % step, -columns % step)
    if any(missing):
        x, weights = F.pad(x, (0, missing[0])), F.pad(weights, (0, missing[1], 0, missing[0]))
    return F.grouped_mm(x, weights, offs=ends)[:, :columns]


class CastCache:
    """Casts weights to the precision of the states, once for all passes inside `cast_once`.

    The copies are dropped at the end of `cast_once`, since changes of weights cannot be detected: AdamW's
    fused step and copies into a DTensor's local part do not change version counters.
    """

    def __init__(self) -> None:
        self.copies: dict[int, tuple[Tensor, Tensor]] | None = None
        """{identity of a weight: the weight and its copy}, or None outside `cast_once`."""

    def cast(self, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the rows of `weight` in this process, in `dtype`; gradients reach `weight`."""
        rows = local(weight)
        if rows.dtype == dtype or self.copies is None or torch.compiler.is_compiling():
            return rows.to(dtype)
        if id(weight) not in self.copies:
            self.copies[id(weight)] = weight, rows.detach().to(dtype)
        cast: Tensor = _Cast.apply(rows, self.copies[id(weight)][1])  # type: ignore[no-untyped-call]
        return cast


@contextmanager
def cast_once(model: nn.Module) -> Iterator[None]:
    """Cast the weights of the model's experts once for all passes inside, which must not change them.

    The copies take no more memory than the forward pass stores anyway, except with recomputed layers, where
    the copies of all layers exist at once.
    """
    caches = [module.casts for module in model.modules() if isinstance(module, Experts)]
    for cache in caches:
        cache.copies = {}
    try:
        yield
    finally:
        for cache in caches:
            cache.copies = None


class _Cast(torch.autograd.Function):
    """Return `copy`, a cast of `weight`, with gradients to `weight`."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, copy: Tensor) -> Tensor:
        ctx.dtype = weight.dtype
        return copy.view_as(copy)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.to(ctx.dtype), None
