"""How many tokens of a group an expert takes."""

from __future__ import annotations

import math

import torch

from mnmt_moe_ext import native, reference


def expert_capacity(*, num_tokens: int, num_experts: int, capacity_factor: float = 2.0) -> int:
    """Slots C of each expert in a group of S tokens.

    C = 4 · ceil(S · capacity_factor / (4 E)): the expert's fair share of the group's tokens, times the
    factor, rounded up to a multiple of four. GShard's factor is 2, one for each choice.

    Args:
        num_tokens: S, tokens in a group, padding included.
        num_experts: E.
        capacity_factor: Slots in fair shares of the group's tokens; at 2 there is one for each choice, if all
            experts are chosen equally often.

    Returns:
        C in tokens, a multiple of four.

    Raises:
        ValueError: A number is out of range.
    """
    if num_tokens < 1:
        raise ValueError(f"`num_tokens` must be at least 1, but is {num_tokens}.")
    if num_experts < 2:
        raise ValueError(f"`num_experts` must be at least 2, but is {num_experts}.")
    if not 0 < capacity_factor < math.inf:
        raise ValueError(f"`capacity_factor` must be positive and finite, but is {capacity_factor}.")
    if not native.COMPILED or torch.compiler.is_compiling():
        # A compiled graph follows a changing number of tokens through Python's arithmetic only.
        return reference.expert_capacity(
            num_tokens=num_tokens, num_experts=num_experts, capacity_factor=capacity_factor
        )
    from mnmt_moe_ext import _native

    return _native.expert_capacity(
        num_tokens=num_tokens, num_experts=num_experts, capacity_factor=capacity_factor
    )
