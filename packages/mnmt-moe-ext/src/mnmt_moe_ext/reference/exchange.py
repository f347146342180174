"""The exchange of tokens with its operators in plain torch."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from mnmt_moe_ext.reference.rows import arrange, combine, dispatch
from mnmt_moe_ext.routing import Routing
from mnmt_moe_ext.token_exchange import Experts, RowOperators, exchange_tokens


def apply_experts_to_tokens(
    experts: Experts, tokens: Tensor, routing: Routing, *, group: dist.ProcessGroup, num_chunks: int = 1
) -> Tensor:
    """Compute `mnmt_moe_ext.apply_experts_to_tokens` in plain torch."""
    operators = RowOperators(arrange=arrange, dispatch=dispatch, combine=combine)
    return exchange_tokens(experts, tokens, routing, group=group, num_chunks=num_chunks, operators=operators)
