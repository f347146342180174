"""What the length of a translation counts for, and how long one may get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.protocol import PAD

LARGEST_ALPHA = 10
"""Larger exponents would overflow for long translations."""

LARGEST_RATIO = 1000


def written(number: float) -> str:
    """A number in a signature: all its digits, and no more."""
    return repr(float(number)).removesuffix(".0")


@dataclass(frozen=True, kw_only=True)
class LengthPenalty:
    """Divisor of a hypothesis' log-probability; long ones gain the more, the larger `alpha` is.

    `power`: len^alpha. `gnmt`: ((len + 5) / 6)^alpha (Wu et al. 2016, eq. 14).

    Raises:
        EvalError: If a field is out of its range.
    """

    kind: Literal["power", "gnmt"] = "gnmt"
    """Formula."""

    alpha: float = 0.6
    """Exponent; 0 turns the penalty off, and more than 10 is refused."""

    def __post_init__(self) -> None:
        if self.kind not in ("power", "gnmt"):
            raise EvalError(f"`kind` must be power or gnmt, but is {self.kind!r}.")
        if not 0 <= self.alpha <= LARGEST_ALPHA:
            raise EvalError(f"`alpha` must be from 0 to {LARGEST_ALPHA}, but is {self.alpha}.")

    def __str__(self) -> str:
        return f"{self.kind}-{written(self.alpha)}"

    def of(self, lengths: Tensor) -> Tensor:
        """The divisors, float64, of hypotheses of `lengths` tokens, `</s>` included."""
        base = lengths.double() if self.kind == "power" else (lengths.double() + 5) / 6
        return base**self.alpha


@dataclass(frozen=True, kw_only=True)
class MaxLength:
    """How many tokens a hypothesis may have: ⌊ratio · source length + extra⌋, at least 1.

    Both lengths count every token but padding: the source's tag, and `</s>`.

    Raises:
        EvalError: If a field is out of its range.
    """

    ratio: float = 2.0
    """Target tokens a source token."""

    extra: int = 20
    """Further target tokens."""

    def __post_init__(self) -> None:
        if not 0 <= self.ratio <= LARGEST_RATIO:
            raise EvalError(f"`ratio` must be from 0 to {LARGEST_RATIO}, but is {self.ratio}.")
        if self.extra < 0:
            raise EvalError(f"`extra` must be at least 0, but is {self.extra}.")

    def __str__(self) -> str:
        return f"{written(self.ratio)}x+{self.extra}"

    def of(self, src: Tensor) -> Tensor:
        """Maximal lengths `(batch,)` of the translations of `src (batch, src_len)`."""
        src_lengths = (src != PAD).sum(dim=1)
        return (self.ratio * src_lengths.double() + self.extra).floor().to(torch.int64).clamp(min=1)
