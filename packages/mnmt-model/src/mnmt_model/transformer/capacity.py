"""How many tokens an expert takes."""

from __future__ import annotations

import math

SLOT_MULTIPLE = 4
"""An expert's slots are a multiple of it."""

_ROUNDING = 1e-12


def expert_capacity(num_tokens: int, num_experts: int, capacity_factor: float) -> int:
    """Slots C of each expert in a group of S tokens: 4 ceil(S · capacity_factor / 4E).

    A share that rounding has pushed just above a multiple of four counts as that multiple, as it does in
    mnmt-moe-ext.
    """
    share = num_tokens * capacity_factor / num_experts
    return SLOT_MULTIPLE * math.ceil(share / SLOT_MULTIPLE * (1 - _ROUNDING))
