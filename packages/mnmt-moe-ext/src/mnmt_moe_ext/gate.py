"""The gate of a mixture-of-experts layer: experts of tokens, and rows of the experts' buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mnmt_moe_ext import native
from mnmt_moe_ext.counter_rng import RandomKey
from mnmt_moe_ext.gate_options import (
    GateOptions,
    Renormalise,
    SecondExpertPolicy,
    check_dtype,
    number_tokens,
)
from mnmt_moe_ext.layout import MAX_ROWS, Layout, LayoutKind, check_bin_size
from mnmt_moe_ext.routing import Routing

UNLIMITED = 2**31 - 1
RENORMALISE_NUMBERS = {"before": 0, "after": 1, "never": 2}


def route(
    logits: Tensor,
    padding_mask: Tensor | None = None,
    *,
    layout: LayoutKind = "ragged",
    bin_size: int | None = None,
    top_k: int = 2,
    capacity: int | None,
    bias: Tensor | None = None,
    choices: Tensor | None = None,
    second_expert_policy: SecondExpertPolicy = "always",
    random_key: RandomKey | None = None,
    token_ids: Tensor | None = None,
    threshold: float = 0.5,
    renormalise: Renormalise | None = None,
) -> tuple[Routing, Layout]:
    """Route each token to its `top_k` best experts, and lay out the rows of the experts' buffers.

    With two experts it is the gate of GShard (Lepikhin et al. 2021, algorithm 1). The gates g are
    softmax(logits), in float32; a token chooses its largest logits, the lower expert of equal ones. In each
    group the choices take slots rank by rank and in token order; one that finds its expert full is dropped.
    Padding goes nowhere, NaN is never preferred. The routing can be differentiated once with respect to
    `logits`. `reference.route` is the definition.

    Args:
        logits: (groups, tokens, experts), float32, bfloat16, which is cast, or float64, which is computed in
            float64.
        padding_mask: (groups, tokens) bool, True for padding; None for no padding.
        layout: "ragged" or "capacity", see `Layout`.
        bin_size: Rows of a bin of a capacity layout, at least the capacity, which is the default. A larger
            bin gives all processes the same shapes if their capacities differ.
        top_k: Experts of a token, 1 to 8.
        capacity: Slots of an expert in a group, as `expert_capacity` returns it; None drops nothing.
        bias: (experts,) float32, added to the logits for the choice only (Wang et al. 2024 add it to the
            gates; added to the logits, no rounding of exp reaches a choice).
        choices: (groups, tokens, top_k) int32, -1 for padding: different experts, instead of the best.
        second_expert_policy: "always" keeps every choice. For two, "random" keeps the second, and gives it a
            slot, with probability min(1, its weight / threshold).
        random_key: The key of the draws of "random".
        token_ids: (groups, tokens) int64; a draw depends only on id and key. By default 0, 1, 2, …
        threshold: The threshold of "random"; 0.5 is GShard's.
        renormalise: Weights are the gates over the token's sum, "before" drops (default) or "after"; or
            "never", the only way for one choice: its gate over itself would teach the gate nothing.

    Returns:
        The routing, and the layout for `dispatch` and `combine`.

    Raises:
        TypeError: An argument has the wrong dtype.
        ValueError: An argument has the wrong shape, device or value, or the capacity does not go with the
            layout.
        RuntimeError: The operators for the device are missing; `choices` are no experts (only the CPU
            notices); on a GPU, `logits` are float64 or have more than 4,096 experts.
    """
    options = GateOptions(
        top_k=top_k,
        capacity=capacity,
        bias=bias,
        choices=choices,
        second_expert_policy=second_expert_policy,
        random_key=random_key,
        token_ids=token_ids,
        threshold=threshold,
        renormalise=renormalise,
    )
    padding_mask = options.check(logits, padding_mask)
    bin_size = operator_bin_size(layout, bin_size, logits, options)
    native.require(logits.device)
    arguments = to_arguments(logits, padding_mask, options, bin_size)
    return to_routing_and_layout(torch.ops.mnmt_moe_ext.route(*arguments), options.capacity, bin_size)


def to_arguments(
    logits: Tensor, padding_mask: Tensor, options: GateOptions, bin_size: int
) -> tuple[Any, ...]:
    """Return the arguments of the operator `route`, in its order."""
    key = None if options.second_expert_policy == "always" else options.random_key
    return (
        logits if logits.dtype == torch.float64 else logits.float(),
        padding_mask,
        options.bias,
        options.choices,
        None if key is None else key.seed_and_step,
        None if key is None else number_tokens(options.token_ids, padding_mask),
        options.top_k,
        UNLIMITED if options.capacity is None else options.capacity,
        bin_size,
        0 if key is None else key.layer,
        options.threshold,
        RENORMALISE_NUMBERS[options.normaliser],
    )


def to_routing_and_layout(
    results: Sequence[Tensor], capacity: int | None, bin_size: int
) -> tuple[Routing, Layout]:
    """Return the results of the operator `route`, by name."""
    weights, gate_means, log_sums, experts, slots, rows, filled_or_ends, load, _, real_tokens = results
    routing = Routing(
        experts=experts,
        slots=slots,
        weights=weights,
        gate_means=gate_means,
        log_sums=log_sums,
        load=load,
        real_tokens=real_tokens,
        capacity=capacity,
    )
    ends = None if bin_size else filled_or_ends
    layout = Layout(
        rows=rows,
        filled=filled_or_ends if ends is None else ends[-1:],
        bin_size=bin_size if ends is None else rows.numel(),
        num_experts=load.shape[1],
        ends=ends,
    )
    return routing, layout


def operator_bin_size(layout: str, bin_size: int | None, logits: Tensor, options: GateOptions) -> int:
    """Return the bin size for the operator `route`: 0 for a ragged layout.

    Raises:
        ValueError: The kind of layout is unknown, bin size or capacity do not go with it, or there are too
            many rows for int32.
    """
    groups, tokens, num_experts = logits.shape
    if layout == "capacity":
        return check_bin_size(bin_size, options.capacity, groups=groups, num_experts=num_experts)
    if layout != "ragged":
        raise ValueError(f'`layout` must be "capacity" or "ragged", but is "{layout}".')
    if bin_size is not None:
        raise ValueError(f'`bin_size` must be None with `layout` "ragged", but is {bin_size}.')
    if (num_choices := groups * tokens * options.top_k) > MAX_ROWS:
        raise ValueError(f"`logits` must make less than 2³¹ choices, but make {num_choices}.")
    return 0


def uniform_choices(padding_mask: Tensor, num_experts: int, step: Tensor | int, *, top_k: int = 2) -> Tensor:
    """Choose experts that spread the tokens of each group evenly, independently of the gates.

    The t-th real token of its group goes to e_1 = (t + step) mod E, and its choice j > 1 to
    e_j = (e_1 + 1 + (⌊t / E⌋ + step + j - 2) mod (E - 1)) mod E. Pass them to `route` as `choices` while
    a gate warms up.

    Args:
        padding_mask: (groups, tokens) bool, True for padding.
        num_experts: E.
        step: The training step, so that a token does not always meet the same experts.
        top_k: Choices of a token, at most E.

    Returns:
        Choices (groups, tokens, top_k) int32, all different, -1 for padding.

    Raises:
        TypeError: The mask is not bool.
        ValueError: It has another shape, or there are fewer experts than choices.
    """
    if not 1 <= top_k <= num_experts:
        raise ValueError(f"`top_k` must be in 1 to `num_experts` ({num_experts}), but is {top_k}.")
    check_dtype("padding_mask", padding_mask, torch.bool)
    if padding_mask.dim() != 2:
        raise ValueError(f"`padding_mask` must be (groups, tokens), but is {tuple(padding_mask.shape)}.")
    position = (~padding_mask).cumsum(dim=1) - 1
    first = (position + step) % num_experts
    turn = position // num_experts + step
    others = [(first + 1 + (turn + rank) % (num_experts - 1)) % num_experts for rank in range(top_k - 1)]
    choices = torch.stack([first, *others], dim=-1)
    return choices.int().masked_fill(padding_mask.unsqueeze(-1), -1)
