"""The top-2 gate of a mixture-of-experts layer."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from mnmt_moe_ext import native
from mnmt_moe_ext.counter_rng import RandomKey
from mnmt_moe_ext.routing import Routing

SecondExpertPolicy = Literal["always", "random", "sampled"]
Renormalise = Literal["before", "after"]

UNLIMITED = 2**31 - 1
LOGIT_DTYPES = (torch.float32, torch.bfloat16, torch.float64)
POLICY_NUMBERS = {"always": 0, "random": 1, "sampled": 2}


def top2_gate(
    logits: Tensor,
    padding_mask: Tensor | None = None,
    *,
    capacity: int | None,
    choices: Tensor | None = None,
    second_expert_policy: SecondExpertPolicy = "always",
    random_key: RandomKey | None = None,
    token_ids: Tensor | None = None,
    threshold: float = 0.5,
    renormalise: Renormalise = "before",
) -> Routing:
    """Route each token to two experts (Lepikhin et al. 2021, GShard, algorithm 1).

    The gates are g = softmax(logits) over the experts, in float32; the choices are the two largest logits,
    the lower index first among equals. In each group every first choice gets its slot before any second
    choice, both in token order; a choice that finds its expert's slots taken is dropped. A token's two
    weights are g_1 and g_2 over g_1 + g_2 + 1e-9, and the weight of a dropped choice is 0. Padding is routed
    nowhere.

    It can be differentiated once, through `weights` and `auxiliary_loss`, with respect to `logits`. A NaN is
    never preferred to a number, but makes the weights and the loss NaN.

    Args:
        logits: Scores of the experts, (groups, tokens, experts), float32, bfloat16 or float64; float64 is
            computed in float64.
        padding_mask: (groups, tokens) bool, True for padding; None for no padding.
        capacity: Slots of each expert in each group, as `expert_capacity` returns it; None drops nothing.
        choices: Two different experts for each token, (groups, tokens, 2) int32, and -1 for padding. They
            replace the largest logits; weights and loss still come from the gates.
        second_expert_policy: "always" keeps every second choice. "random" keeps it with probability
            min(1, weight of the second choice / threshold); a choice that is not kept takes no slot.
            "sampled" draws it from the gates of all experts but the first choice.
        random_key: The key of the draws of "random" and "sampled".
        token_ids: Ids of the tokens, (groups, tokens) int64. A token's draw depends on its id and the key
            alone. By default tokens are numbered through all groups.
        threshold: The threshold of "random". The default of 0.5 keeps the second choice if 2 g_2 exceeds the
            draw.
        renormalise: "before" divides by the sum of both gates, whether or not the second choice was kept.
            "after" divides by the sum over the choices with a slot, and the policy compares the plain gate.

    Returns:
        The routing; its `auxiliary_loss` is E² · mean(f_e · m_e) over experts and over the groups that hold a
        real token. f_e is the share of the group's real tokens whose first choice is e, before drops, and
        m_e their mean gate.

    Raises:
        TypeError: An argument has the wrong dtype.
        ValueError: An argument has the wrong shape, device or value.
        RuntimeError: The compiled operators for the device are missing; on the CPU, `choices` has invalid
            experts; on a GPU, `logits` are float64 or have more than 4,096 experts.
    """
    if padding_mask is None:
        padding_mask = torch.zeros(logits.shape[:2], dtype=torch.bool, device=logits.device)
    check_gate_arguments(
        logits,
        padding_mask,
        capacity=capacity,
        choices=choices,
        second_expert_policy=second_expert_policy,
        random_key=random_key,
        token_ids=token_ids,
        threshold=threshold,
        renormalise=renormalise,
    )
    native.require(logits.device)
    key = None if second_expert_policy == "always" else random_key
    weights, auxiliary_loss, experts, slots, load, _, _ = torch.ops.mnmt_moe_ext.top2_gate(
        logits,
        padding_mask,
        choices,
        None if key is None else key.seed_and_step,
        None if key is None else number_tokens(token_ids, padding_mask),
        UNLIMITED if capacity is None else capacity,
        0 if key is None else key.layer,
        POLICY_NUMBERS[second_expert_policy],
        threshold,
        renormalise == "after",
    )
    return Routing(
        experts=experts,
        slots=slots,
        weights=weights,
        auxiliary_loss=auxiliary_loss,
        load=load,
        capacity=capacity,
    )


def number_tokens(token_ids: Tensor | None, padding_mask: Tensor) -> Tensor:
    """Return the given ids, or 0, 1, … through all groups, (groups, tokens) int64."""
    if token_ids is not None:
        return token_ids
    return torch.arange(padding_mask.numel(), device=padding_mask.device).view(padding_mask.shape)


def uniform_choices(padding_mask: Tensor, num_experts: int, step: Tensor | int) -> Tensor:
    """Choose experts that spread the tokens of each group evenly, whatever the gates are.

    The t-th real token of its group goes to e_1 = (t + step) mod E and to
    e_2 = (e_1 + 1 + (⌊t / E⌋ + step) mod (E - 1)) mod E. Pass them to `top2_gate` as `choices` while a gate
    warms up.

    Args:
        padding_mask: (groups, tokens) bool, True for padding.
        num_experts: E, at least 2.
        step: The training step, so that a token does not always meet the same experts.

    Returns:
        Choices (groups, tokens, 2) int32, -1 for padding.

    Raises:
        ValueError: There are fewer than two experts.
    """
    if num_experts < 2:
        raise ValueError(f"`num_experts` must be at least 2, but is {num_experts}.")
    real = ~padding_mask
    position = real.cumsum(dim=1) - 1
    first = (position + step) % num_experts
    distance = 1 + (position // num_experts + step) % (num_experts - 1)
    pairs = torch.stack([first, (first + distance) % num_experts], dim=-1)
    return pairs.int().masked_fill(padding_mask.unsqueeze(-1), -1)


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
    """Check the arguments of a gate.

    Raises:
        TypeError: An argument has the wrong dtype.
        ValueError: An argument has the wrong shape, device or value.
    """
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
    """Check a tensor with one value, or `after` values, for each token."""
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
