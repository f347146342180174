"""Search options: beam, length penalty, length limits and sampling."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self, cast

from mnmt_eval.errors import EvalError
from mnmt_eval.search.protocol import PAD

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

MOST_HYPOTHESES = 10_000
"""Most hypotheses of a sentence: far beyond what fits into memory with any model."""

LARGEST_ALPHA = 10
"""The largest exponent; larger ones would overflow for long translations."""

LARGEST_RATIO = 1000
"""The largest number of target tokens per source token."""


def format_number(number: float) -> str:
    """Return a number as signatures write it: with all its digits and no more."""
    return repr(float(number)).removesuffix(".0")


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d*)?|\.\d+", text) is not None


@dataclass(frozen=True, kw_only=True)
class LengthPenalty:
    """The divisor of a hypothesis' log-probability; a larger `alpha` favours longer hypotheses.

    `power`: len^alpha. `gnmt`: ((len + 5) / 6)^alpha (Wu et al. 2016, eq. 14).

    Raises:
        EvalError: If a field is out of its range.
    """

    kind: Literal["power", "gnmt"] = "power"
    """The formula, `power` or `gnmt`."""
    alpha: float = 0.6
    """The exponent, from 0, which turns the penalty off, to 10."""

    def __post_init__(self) -> None:
        if self.kind not in ("power", "gnmt"):
            raise EvalError(f"`kind` must be power or gnmt, but is {self.kind!r}.")
        if not 0 <= self.alpha <= LARGEST_ALPHA:
            raise EvalError(f"`alpha` must be from 0 to {LARGEST_ALPHA}, but is {self.alpha}.")

    def __str__(self) -> str:
        return f"{self.kind}-{format_number(self.alpha)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the penalty of a text such as `power-0.6`, as signatures write it.

        Raises:
            EvalError: If the text has another form.
        """
        kind, _, alpha = text.partition("-")
        if kind not in ("power", "gnmt") or not _is_number(alpha):
            raise EvalError(f"`length_penalty` must be power-ALPHA or gnmt-ALPHA, but is {text!r}.")
        return cls(kind=cast(Literal["power", "gnmt"], kind), alpha=float(alpha))

    def divisors(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the divisors of hypotheses of `lengths` tokens, `</s>` included."""
        base = lengths.astype("float64") if self.kind == "power" else (lengths + 5) / 6
        return base**self.alpha


@dataclass(frozen=True, kw_only=True)
class MaxLength:
    """The largest number of tokens of a hypothesis: ⌊ratio · source length + extra⌋, at least 1.

    Both lengths count every token but padding, so the source's tag and `</s>` count too.

    Raises:
        EvalError: If a field is out of its range.
    """

    ratio: float = 2.0
    """Target tokens per source token."""
    extra: int = 20
    """Target tokens beyond `ratio`."""

    def __post_init__(self) -> None:
        if not 0 <= self.ratio <= LARGEST_RATIO:
            raise EvalError(f"`ratio` must be from 0 to {LARGEST_RATIO}, but is {self.ratio}.")
        if self.extra < 0:
            raise EvalError(f"`extra` must be at least 0, but is {self.extra}.")

    def __str__(self) -> str:
        return f"{format_number(self.ratio)}x+{self.extra}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the limit of a text such as `2x+20`, as signatures write it.

        Raises:
            EvalError: If the text has another form.
        """
        ratio, x, extra = text.partition("x+")
        if not (x and _is_number(ratio) and extra.isdecimal()):
            raise EvalError(f"`max_length` must be RATIOx+EXTRA, such as 2x+20, but is {text!r}.")
        return cls(ratio=float(ratio), extra=int(extra))

    def limits(self, src: Tensor) -> NDArray[np.int64]:
        """Return the maximal lengths `(batch,)` of translations of `src (batch, src_len)`."""
        src_lengths = (src != PAD).sum(dim=1).cpu().numpy()
        return ((self.ratio * src_lengths + self.extra) // 1).astype("int64").clip(min=1)


@dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """The distribution that each token is drawn from: the model's, sharpened and cut to its likeliest tokens.

    Raises:
        EvalError: If a field is out of its range.
    """

    temperature: float = 1.0
    """The divisor of the log-probabilities; below 1, likely tokens become likelier."""
    top_k: int | None = None
    """Draw from this many of the likeliest tokens; by default from all."""
    top_p: float = 1.0
    """Draw from the fewest likeliest tokens that together have this probability (Holtzman et al. 2020)."""
    seed: int = 0
    """The seed; a sample depends on it, on the source and on the sample's number, and on nothing else."""

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise EvalError(f"`temperature` must be above 0 and finite, but is {self.temperature}.")
        if self.top_k is not None and self.top_k < 1:
            raise EvalError(f"`top_k` must be at least 1, but is {self.top_k}.")
        if not 0 < self.top_p <= 1:
            raise EvalError(f"`top_p` must be above 0 and at most 1, but is {self.top_p}.")

    def __str__(self) -> str:
        cuts = "" if self.top_k is None else f"-k{self.top_k}"
        cuts += "" if self.top_p == 1 else f"-p{format_number(self.top_p)}"
        return f"t{format_number(self.temperature)}{cuts}-seed{self.seed}"


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """The options of a search.

    Raises:
        EvalError: If a field is out of its range, or contradicts another.
    """

    beam: int = 1
    """Hypotheses kept at every step; 1 is greedy search."""
    n_best: int = 1
    """Hypotheses returned for each source, at most `beam`; with `sampling`, the number of samples."""
    length_penalty: LengthPenalty = field(default_factory=LengthPenalty)
    """The divisor that makes hypotheses of different lengths comparable."""
    max_length: MaxLength = field(default_factory=MaxLength)
    """The length at which hypotheses are cut off."""
    early_stopping: Literal["exact", "filled"] = "filled"
    """When a sentence is done. `filled`: as soon as `beam` hypotheses have ended, as most toolkits do.
    `exact`: when no live hypothesis can enter the n-best any more, which never changes the result."""
    sampling: SamplingConfig | None = None
    """Draw translations at random instead of searching for the best."""

    def __post_init__(self) -> None:
        for name in ("beam", "n_best"):
            if (value := getattr(self, name)) < 1:
                raise EvalError(f"`{name}` must be at least 1, but is {value}.")
            if value > MOST_HYPOTHESES:
                raise EvalError(f"`{name}` must be at most {MOST_HYPOTHESES:,}, but is {value:,}.")
        if self.early_stopping not in ("exact", "filled"):
            raise EvalError(f"`early_stopping` must be exact or filled, but is {self.early_stopping!r}.")
        if self.sampling and self.beam != 1:
            raise EvalError(f"`beam` must be 1 with `sampling`, but is {self.beam}.")
        if not self.sampling and self.n_best > self.beam:
            raise EvalError(f"`n_best` must be at most `beam` ({self.beam}), but is {self.n_best}.")

    @property
    def signature(self) -> str:
        """The options that change which translation is best, as signatures of metrics name them."""
        parts = {
            "beam": None if self.sampling else self.beam,
            "sample": self.sampling,
            "of": self.n_best if self.sampling and self.n_best > 1 else None,
            "lp": self.length_penalty if self.beam > 1 or self.n_best > 1 else None,
            "stop": self.early_stopping if self.beam > 1 else None,
            "maxlen": self.max_length,
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items() if value is not None)
