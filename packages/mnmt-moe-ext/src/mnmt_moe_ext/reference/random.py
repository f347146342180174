"""The draws of a gate: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").

32-bit words are held in int64 tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_moe_ext.random_key import RandomKey

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_INCREMENTS = (0x9E3779B9, 0xBB67AE85)


def uniform(random_key: RandomKey, token_ids: Tensor) -> Tensor:
    """The draw of each token, float64, in [0, 1) with 53 random bits, in the shape of `token_ids` (int64)."""
    seed, step = random_key.seed_and_step
    layer = torch.as_tensor(random_key.layer, device=token_ids.device)
    counter = (_low(token_ids), _high(token_ids), _low(step), layer)
    first, second, _, _ = philox4x32(counter, (_low(seed), _high(seed)))
    return ((first >> 5) * 2**26 + (second >> 6)).double() * 2.0**-53


def philox4x32(counter: tuple[Tensor, ...], key: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """Four random words for four words of counter and two of key."""
    for _ in range(ROUNDS):
        first = counter[0] * MULTIPLIERS[0]
        second = counter[2] * MULTIPLIERS[1]
        counter = (
            _high(second) ^ counter[1] ^ key[0],
            _low(second),
            _high(first) ^ counter[3] ^ key[1],
            _low(first),
        )
        key = (_low(key[0] + KEY_INCREMENTS[0]), _low(key[1] + KEY_INCREMENTS[1]))
    return counter


def _low(numbers: Tensor) -> Tensor:
    return numbers & 0xFFFFFFFF


def _high(numbers: Tensor) -> Tensor:
    return (numbers >> 32) & 0xFFFFFFFF
