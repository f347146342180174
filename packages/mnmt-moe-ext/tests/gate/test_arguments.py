"""A wrong argument gets a sentence that names it, the rule and the value."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from gate_calls import routing_of

from mnmt_moe_ext import RandomKey, reference, uniform_choices

LOGITS = torch.zeros(2, 3, 4)
CHOICES = torch.tensor([0, 1], dtype=torch.int32).expand(2, 3, 2)
KEY = RandomKey.make(seed=1, step=1)


MESSAGES = {
    TypeError: {
        "`logits` must be float32, bfloat16 or float64, but is torch.float16.": {"logits": LOGITS.half()},
        "`logits` must be float32, bfloat16 or float64, but is list.": {"logits": LOGITS.tolist()},
        "`capacity` must be a whole number, but is 2.5.": {"capacity": 2.5},
        "`padding_mask` must be torch.bool, but is torch.float32.": {"padding_mask": torch.zeros(2, 3)},
        "`bias` must be torch.float32, but is torch.float64.": {"bias": torch.zeros(4).double()},
        "`random_key.seed_and_step` must be torch.int64, but is torch.float32.": {
            "second_expert_policy": "random",
            "random_key": RandomKey(seed_and_step=torch.zeros(2)),
        },
        "`token_ids` must be torch.int64, but is torch.float32.": {"token_ids": torch.zeros(2, 3)},
        "`choices` must be torch.int32, but is torch.int64.": {"choices": CHOICES.long()},
    },
    ValueError: {
        "`logits` must be (groups, tokens, experts), but is (3, 4).": {"logits": LOGITS[0]},
        "`logits` must have at least 1 expert, but has 0.": {"logits": LOGITS[..., :0]},
        "`padding_mask` must be (groups, tokens) = (2, 3), but is (3, 2).": {
            "padding_mask": torch.zeros(3, 2, dtype=torch.bool)
        },
        "`padding_mask` must be on cpu like `logits`, but is on meta.": {
            "padding_mask": torch.zeros(2, 3, dtype=torch.bool, device="meta")
        },
        "`capacity` must be at least 1, or None, but is 0.": {"capacity": 0},
        "`threshold` must be positive, but is 0.0.": {"threshold": 0.0},
        "`top_k` must be in 1 to 8, but is 0.": {"top_k": 0},
        "`top_k` must be in 1 to 8, but is 9.": {"top_k": 9},
        "`top_k` must be at most the number of experts (4), but is 5.": {"top_k": 5},
        "`bias` must be (experts,) = (4,), but is (3,).": {"bias": torch.zeros(3)},
        "`bias` must be on cpu like `logits`, but is on meta.": {"bias": torch.zeros(4, device="meta")},
        '`renormalise` must be "before", "after" or "never", but is "often".': {"renormalise": "often"},
        '`renormalise` must be "never" with `top_k` 1, or the weight is always 1 and the gate learns '
        'nothing, but is "before".': {"top_k": 1, "renormalise": "before"},
        '`top_k` must be 2 with `second_expert_policy` "random", but is 3.': {
            "second_expert_policy": "random",
            "top_k": 3,
            "random_key": KEY,
        },
        '`second_expert_policy` must be "always" or "random", but is "never".': {
            "second_expert_policy": "never"
        },
        '`random_key` must be given with `second_expert_policy` "random".': {
            "second_expert_policy": "random"
        },
        "`random_key.seed_and_step` must be (2,), but is (3,).": {
            "second_expert_policy": "random",
            "random_key": RandomKey(seed_and_step=torch.arange(3)),
        },
        "`random_key.seed_and_step` must be on cpu like `logits`, but is on meta.": {
            "second_expert_policy": "random",
            "random_key": RandomKey.make(seed=1, step=1, device="meta"),
        },
        "`random_key.layer` must be in 0 to 2**32 - 1, but is -1.": {
            "second_expert_policy": "random",
            "random_key": RandomKey.make(seed=1, step=1, layer=-1),
        },
        "`token_ids` must be (groups, tokens) = (2, 3), but is (6,).": {"token_ids": torch.arange(6)},
        "`choices` must be (groups, tokens, 2) = (2, 3, 2), but is (2, 3).": {"choices": CHOICES[..., 0]},
        "`choices` must be (groups, tokens, 3) = (2, 3, 3), but is (2, 3, 2).": {
            "choices": CHOICES,
            "top_k": 3,
        },
    },
}


@pytest.mark.parametrize("gate", [routing_of, reference.top_k_gate])
@pytest.mark.parametrize(
    ("error", "message"), [(error, message) for error, messages in MESSAGES.items() for message in messages]
)
def test_messages(gate: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        gate(**{"logits": LOGITS, "capacity": 4, **MESSAGES[error][message]})


@pytest.mark.parametrize(
    ("experts", "is_padding"),
    [
        ((0, 4), False),
        ((-2, 0), False),
        ((0, -1), False),
        ((2, 2), False),
        ((-1, -1), False),
        ((0, 1), True),
        ((3,), True),
        ((1, 2, 3, 1), False),
    ],
)
def test_forced_choices_must_be_different_experts_or_padding(
    experts: tuple[int, ...], is_padding: bool
) -> None:
    top_k = len(experts)
    choices = torch.arange(top_k, dtype=torch.int32).repeat(2, 3, 1)
    choices[1, 2] = torch.tensor(experts)
    padding_mask = torch.zeros(2, 3, dtype=torch.bool)
    padding_mask[1, 2] = is_padding
    numbers = ", ".join(map(str, experts))
    what = ", which is padding" if is_padding else ""
    message = (
        f"`choices` must be {top_k} different experts for each token, and -1 for padding, "
        f"but are {numbers} of 4 for token 5{what}"
    )
    with pytest.raises(RuntimeError, match=f"^{re.escape(message)}$"):
        routing_of(LOGITS, padding_mask, top_k=top_k, capacity=4, choices=choices)


def test_uniform_choices_need_enough_experts() -> None:
    padding_mask = torch.zeros(1, 2, dtype=torch.bool)
    assert uniform_choices(padding_mask, 1, step=3, top_k=1).tolist() == [[[0], [0]]]
    with pytest.raises(ValueError, match=r"^`top_k` must be in 1 to `num_experts` \(3\), but is 4\.$"):
        uniform_choices(padding_mask, 3, step=0, top_k=4)
    with pytest.raises(TypeError, match=r"^`padding_mask` must be torch.bool, but is torch.float32\.$"):
        uniform_choices(padding_mask.float(), 3, step=0)
    with pytest.raises(ValueError, match=r"^`padding_mask` must be \(groups, tokens\), but is \(2,\)\.$"):
        uniform_choices(padding_mask[0], 3, step=0)


def test_a_seed_has_64_bits() -> None:
    with pytest.raises(ValueError, match=r"^`seed` must be within 64 bits, but is 18446744073709551616\.$"):
        RandomKey.make(seed=2**64, step=1)
