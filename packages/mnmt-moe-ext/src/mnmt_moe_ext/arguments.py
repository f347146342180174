"""The arguments every gate takes, checked."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

SecondExpertPolicy = Literal["always", "random"]
Renormalise = Literal["before", "after"]

LOGIT_DTYPES = (torch.float32, torch.bfloat16, torch.float64)


def check_gate_arguments(
    logits: Tensor,
    padding_mask: Tensor,
    draws: Tensor | None,
    *,
    capacity: int,
    second_expert_policy: SecondExpertPolicy,
    threshold: float,
    renormalise: Renormalise,
) -> None:
    """Raises ValueError or TypeError naming the argument, what it must be and what it is."""
    _check_logits(logits)
    _check_padding_mask(padding_mask, logits)
    if capacity < 1:
        raise ValueError(f"`capacity` must be at least 1, but is {capacity}.")
    _check_choice("second_expert_policy", second_expert_policy, get_args(SecondExpertPolicy))
    _check_choice("renormalise", renormalise, get_args(Renormalise))
    if not threshold > 0:
        raise ValueError(f"`threshold` must be positive, but is {threshold}.")
    _check_draws(draws, logits, second_expert_policy)


def _check_logits(logits: Tensor) -> None:
    if logits.dtype not in LOGIT_DTYPES:
        raise TypeError(f"`logits` must be float32, bfloat16 or float64, but is {logits.dtype}.")
    if logits.dim() != 3:
        raise ValueError(f"`logits` must be (groups, tokens, experts), but is {tuple(logits.shape)}.")
    if logits.shape[2] < 2:
        raise ValueError(f"`logits` must have at least 2 experts, but has {logits.shape[2]}.")


def _check_padding_mask(padding_mask: Tensor, logits: Tensor) -> None:
    if padding_mask.dtype != torch.bool:
        raise TypeError(f"`padding_mask` must be torch.bool, but is {padding_mask.dtype}.")
    _check_per_token("padding_mask", padding_mask, logits)


def _check_draws(draws: Tensor | None, logits: Tensor, second_expert_policy: SecondExpertPolicy) -> None:
    if second_expert_policy == "always":
        if draws is not None:
            raise ValueError('`draws` must be None with `second_expert_policy` "always".')
        return
    if draws is None:
        raise ValueError('`draws` must be given with `second_expert_policy` "random".')
    if draws.dtype != torch.float32:
        raise TypeError(f"`draws` must be torch.float32, but is {draws.dtype}.")
    _check_per_token("draws", draws, logits)


def _check_per_token(name: str, tensor: Tensor, logits: Tensor) -> None:
    expected = tuple(logits.shape[:2])
    if tuple(tensor.shape) != expected:
        raise ValueError(f"`{name}` must be (groups, tokens) = {expected}, but is {tuple(tensor.shape)}.")
    if tensor.device != logits.device:
        raise ValueError(f"`{name}` must be on {logits.device} like `logits`, but is on {tensor.device}.")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        expected = " or ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f'`{name}` must be {expected}, but is "{value}".')
