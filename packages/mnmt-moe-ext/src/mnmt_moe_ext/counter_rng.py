"""Random numbers without a state, from Philox4x32-10.

The generator is that of Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
A draw is a function of a key and a token id: nothing has to be saved, and all devices draw the same number.
The compiled operators draw in C++; the reference draws with the functions of this module.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class RandomKey:
    """Seed, step and layer of a gate's draws.

    A token's draw depends only on (seed, layer, step, token id). The device, the number of ranks and
    the other tokens do not matter. Seed and step are a tensor, so that a captured CUDA graph can be replayed
    with another step.
    """

    seed_and_step: Tensor
    """(2,) int64, on the device of the logits."""
    layer: int = 0
    """Index of the gate in its model, 0 to 2³² - 1."""

    @classmethod
    def make(
        cls, *, seed: int, step: int, layer: int = 0, device: torch.device | str | None = None
    ) -> RandomKey:
        """Make the key of a seed, a step and a layer.

        Raises:
            ValueError: A number has more than 64 bits.
        """
        for name, number in (("seed", seed), ("step", step)):
            if not -(2**63) <= number < 2**63:
                raise ValueError(f"`{name}` must be within 64 bits, but is {number}.")
        return cls(seed_and_step=torch.tensor([seed, step], device=device), layer=layer)


ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_INCREMENTS = (0x9E3779B9, 0xBB67AE85)


def uniform(random_key: RandomKey, token_ids: Tensor) -> Tensor:
    """Draw one number in [0, 1) for each token.

    Args:
        random_key: Seed, step and layer.
        token_ids: Ids of the tokens, int64, of any shape.

    Returns:
        Draws with 53 random bits, float64, in the shape of `token_ids`.
    """
    seed, step = random_key.seed_and_step
    layer = torch.as_tensor(random_key.layer, device=token_ids.device)
    counter = (_low(token_ids), _high(token_ids), _low(step), layer)
    first, second, _, _ = philox4x32(counter, (_low(seed), _high(seed)))
    return ((first >> 5) * 2**26 + (second >> 6)).double() * 2.0**-53


def philox4x32(counter: tuple[Tensor, ...], key: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """Return the four random words of a counter of four words and a key of two.

    A word is a number below 2³² in an int64 tensor.
    """
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
