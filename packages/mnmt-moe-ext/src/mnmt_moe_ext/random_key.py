"""What the random choices of a gate are a function of, beside the token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class RandomKey:
    """Seed, step and layer of a gate's draws.

    A token's draw is a function of (seed, layer, step, token id) and of nothing else: not of the device, the
    number of ranks, or the tokens beside it. Seed and step are a tensor, so that a captured CUDA graph can be
    replayed with another step.
    """

    seed_and_step: Tensor
    """(2,) int64, on the device of the logits."""

    layer: int = 0
    """Tells the gates of a model apart; 0 to 2³² - 1."""

    @classmethod
    def make(
        cls, *, seed: int, step: int, layer: int = 0, device: torch.device | str | None = None
    ) -> RandomKey:
        """The key of a seed and a step."""
        return cls(seed_and_step=torch.tensor([seed, step], device=device), layer=layer)
