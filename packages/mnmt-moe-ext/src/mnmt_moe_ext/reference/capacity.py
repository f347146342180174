"""How many tokens of a group an expert takes, in Python's arithmetic."""

from __future__ import annotations

import math

MULTIPLE = 4
ROUNDING = 1e-12
"""A share that rounding has pushed so little above a multiple counts as that multiple."""


def expert_capacity(*, num_tokens: int, num_experts: int, capacity_factor: float = 2.0) -> int:
    """The same as `mnmt_moe_ext.expert_capacity`, without its checks."""
    share = num_tokens * capacity_factor / num_experts
    return math.ceil(share / MULTIPLE * (1 - ROUNDING)) * MULTIPLE
