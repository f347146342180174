"""The arguments every gate takes, checked."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from mnmt_moe_ext.random_key import RandomKey

SecondExpertPolicy = Literal["always", "random", "sampled"]
Renormalise = Literal["before", "after"]

LOGIT_DTYPES = (torch.float32, torch.bfloat16, torch.float64)


def check_gate_arguments(
    logits: Tensor,
    padding_mask: Tensor,
    *,
    capacity: int | None,
    choices: Tensor | None,
    second_expert_policy: SecondExpertPolicy,
    random_key: RandomKey | None,
    token_ids: Tensor | None,
    threshold: float,
    renormalise: Renormalise,
) -> None:
    """Raise ValueError or TypeError naming the argument, what it must be and what it is."""
    _check_logits(logits)
    _check_tensor("padding_mask", padding_mask, torch.bool, logits, "(groups, tokens)", ())
    if capacity is not None and capacity < 1:
        raise ValueError(f"`capacity` must be at least 1, or None, but is {capacity}.")
    _check_option("second_expert_policy", second_expert_policy, get_args(SecondExpertPolicy))
    _check_option("renormalise", renormalise, get_args(Renormalise))
    if not threshold > 0:
        raise ValueError(f"`threshold` must be positive, but is {threshold}.")
    if choices is not None:
        _check_choices(choices, logits, second_expert_policy)
    if token_ids is not None:
        _check_tensor("token_ids", token_ids, torch.int64, logits, "(groups, tokens)", ())
    if second_expert_policy != "always":
        _check_random_key(random_key, logits, second_expert_policy)


def _check_logits(logits: Tensor) -> None:
    if logits.dtype not in LOGIT_DTYPES:
        raise TypeError(f"`logits` must be float32, bfloat16 or float64, but is {logits.dtype}.")
    if logits.dim() != 3:
        raise ValueError(f"`logits` must be (groups, tokens, experts), but is {tuple(logits.shape)}.")
    if logits.shape[2] < 2:
        raise ValueError(f"`logits` must have at least 2 experts, but has {logits.shape[2]}.")


def _check_choices(choices: Tensor, logits: Tensor, second_expert_policy: SecondExpertPolicy) -> None:
    if second_expert_policy == "sampled":
        raise ValueError('`choices` must be None with `second_expert_policy` "sampled".')
    _check_tensor("choices", choices, torch.int32, logits, "(groups, tokens, 2)", (2,))


def _check_random_key(
    random_key: RandomKey | None, logits: Tensor, second_expert_policy: SecondExpertPolicy
) -> None:
    if random_key is None:
        raise ValueError(f'`random_key` must be given with `second_expert_policy` "{second_expert_policy}".')
    seed_and_step = random_key.seed_and_step
    if seed_and_step.dtype != torch.int64:
        raise TypeError(f"`random_key.seed_and_step` must be torch.int64, but is {seed_and_step.dtype}.")
    if tuple(seed_and_step.shape) != (2,):
        raise ValueError(f"`random_key.seed_and_step` must be (2,), but is {tuple(seed_and_step.shape)}.")
    _check_device("random_key.seed_and_step", seed_and_step, logits)
    if not 0 <= random_key.layer < 2**32:
        raise ValueError(f"`random_key.layer` must be in 0 to 2**32 - 1, but is {random_key.layer}.")


def _check_tensor(
    name: str, tensor: Tensor, dtype: torch.dtype, logits: Tensor, layout: str, after: tuple[int, ...]
) -> None:
    """One value, or `after` of them, for each token."""
    if tensor.dtype != dtype:
        raise TypeError(f"`{name}` must be {dtype}, but is {tensor.dtype}.")
    expected = (*logits.shape[:2], *after)
    if tuple(tensor.shape) != expected:
        raise ValueError(f"`{name}` must be {layout} = {expected}, but is {tuple(tensor.shape)}.")
    _check_device(name, tensor, logits)


def _check_device(name: str, tensor: Tensor, logits: Tensor) -> None:
    if tensor.device != logits.device:
        raise ValueError(f"`{name}` must be on {logits.device} like `logits`, but is on {tensor.device}.")


def _check_option(name: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        *others, last = (f'"{option}"' for option in options)
        raise ValueError(f'`{name}` must be {", ".join(others)} or {last}, but is "{value}".')
