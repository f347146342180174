"""How to draw translations at random."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_eval.errors import EvalError
from mnmt_eval.search.length import written


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
