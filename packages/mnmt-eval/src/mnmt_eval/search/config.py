"""What a user sets of a search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.search.protocol import PAD

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


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """From what each token is drawn: the model's distribution, sharpened, then cut to its likeliest tokens.

    Raises:
        EvalError: If a field is out of its range.
    """

    temperature: float = 1.0
    """Divisor of the log-probabilities; below 1, likely tokens become likelier."""

    top_k: int | None = None
    """Draw from that many of the likeliest tokens; all by default."""

    top_p: float = 1.0
    """Draw from the fewest likeliest tokens that together have this probability (Holtzman et al. 2020)."""

    seed: int = 0
    """What is drawn depends on it, the source and the sample's number, and on nothing else."""

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise EvalError(f"`temperature` must be above 0 and finite, but is {self.temperature}.")
        if self.top_k is not None and self.top_k < 1:
            raise EvalError(f"`top_k` must be at least 1, but is {self.top_k}.")
        if not 0 < self.top_p <= 1:
            raise EvalError(f"`top_p` must be above 0 and at most 1, but is {self.top_p}.")

    def __str__(self) -> str:
        kept = "" if self.top_k is None else f"-k{self.top_k}"
        kept += "" if self.top_p == 1 else f"-p{written(self.top_p)}"
        return f"t{written(self.temperature)}{kept}-seed{self.seed}"


_CHOICES = {"early_stopping": ("exact", "filled"), "cache": ("flat", "reorder")}


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How to search for translations.

    Raises:
        EvalError: If a field is out of its range, or contradicts another.
    """

    beam: int = 1
    """Hypotheses kept at a time; 1 is greedy search."""

    n_best: int = 1
    """Hypotheses to return of each sentence, at most `beam`; with `sampling`, how many to draw."""

    length_penalty: LengthPenalty = field(default_factory=LengthPenalty)
    """How hypotheses of different lengths are compared."""

    max_length: MaxLength = field(default_factory=MaxLength)
    """Where hypotheses are cut off."""

    min_length: int = 0
    """Fewest tokens of a hypothesis, `</s>` included."""

    no_repeat_ngram: int = 0
    """Length of the n-grams that no hypothesis may hold twice; 0 allows all."""

    early_stopping: Literal["exact", "filled"] = "exact"
    """When a sentence is done: `exact` when no live hypothesis can enter the n-best any more, which changes
    nothing of what is found; `filled` as soon as `beam` hypotheses have ended, as most toolkits do."""

    cache: Literal["flat", "reorder"] = "flat"
    """How beam search keeps keys and values: `flat` never moves them, where the model offers that; `reorder`
    copies them when hypotheses branch. Both find the same."""

    sampling: Sampling | None = None
    """Draw translations in place of searching for the best."""

    def __post_init__(self) -> None:
        for name, least in {"beam": 1, "n_best": 1, "min_length": 0, "no_repeat_ngram": 0}.items():
            if getattr(self, name) < least:
                raise EvalError(f"`{name}` must be at least {least}, but is {getattr(self, name)}.")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise EvalError(f"`{name}` must be {' or '.join(choices)}, but is {getattr(self, name)!r}.")
        if self.sampling and self.beam != 1:
            raise EvalError(f"`beam` must be 1 with `sampling`, but is {self.beam}.")
        if not self.sampling and self.n_best > self.beam:
            raise EvalError(f"`n_best` must be at most `beam` ({self.beam}), but is {self.n_best}.")

    @property
    def signature(self) -> str:
        """All that changes which translation is best, in a few letters, such as beam, penalty and lengths."""
        parts = {
            "beam": None if self.sampling else self.beam,
            "sample": self.sampling,
            "of": self.n_best if self.sampling and self.n_best > 1 else None,
            "lp": self.length_penalty if self.beam > 1 or self.n_best > 1 else None,
            "stop": self.early_stopping if self.beam > 1 else None,
            "maxlen": self.max_length,
            "minlen": self.min_length or None,
            "norepeat": self.no_repeat_ngram or None,
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items() if value is not None)
