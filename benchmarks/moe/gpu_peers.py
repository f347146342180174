"""Peers that run on a GPU alone, if they are installed: moe-ops 0.1 and liger-kernel 0.8.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def moe_ops_route(x: Tensor, logits: Tensor, experts: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """moe-ops' gate, permutation and its way back; rows of an expert come in no certain order."""
    from moe_ops import fused_topk_softmax, permute, unpermute  # type: ignore[import-not-found]

    num_tokens, num_experts = logits.shape
    weights, indices = fused_topk_softmax(logits, 2)
    rows, places, starts = permute(x, indices, 0, num_experts)
    outputs: Tensor = unpermute(experts(rows, starts[1:]), places, weights, num_tokens, 2)
    return outputs


def moe_ops_experts(wi: Tensor, wo: Tensor, rows: Tensor, ends: Tensor) -> Tensor:
    """ReLU experts with moe-ops' grouped product."""
    from moe_ops import grouped_gemm

    hidden = torch.relu(grouped_gemm(rows, wi, ends, trans_b=False))
    outputs: Tensor = grouped_gemm(hidden, wo, ends, trans_b=False)
    return outputs


def liger_layer(gate_and_up: Tensor, down: Tensor, x: Tensor, logits: Tensor) -> Tensor:
    """liger-kernel's whole layer, whose experts are SwiGLU; it takes the choices ready made."""
    from liger_kernel.ops.fused_moe import LigerFusedMoEFunction  # type: ignore[import-not-found]

    weights, indices = logits.softmax(dim=-1).topk(2, dim=-1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    apply: Any = LigerFusedMoEFunction.apply
    outputs: Tensor = apply(x, gate_and_up, down, indices.int(), weights.to(x.dtype))
    return outputs
