"""How to search."""

from __future__ import annotations

from dataclasses import dataclass, field

from mnmt_eval.errors import EvalError
from mnmt_eval.search.length import LengthPenalty, MaxLength


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How to search for a translation.

    Raises:
        EvalError: if `beam` is below 1.
    """

    beam: int = 1
    """Hypotheses kept at a time; 1 is greedy search."""

    length_penalty: LengthPenalty = field(default_factory=LengthPenalty)
    """How finished hypotheses of different lengths are compared; greedy search compares none."""

    max_length: MaxLength = field(default_factory=MaxLength)
    """Where hypotheses are cut off."""

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise EvalError(f"`beam` must be at least 1, but is {self.beam}.")

    @property
    def signature(self) -> str:
        """All that changes what is found, in sacreBLEU's style: `beam:4|lp:gnmt-0.6|maxlen:2x+20`."""
        penalty = "" if self.beam == 1 else f"|lp:{self.length_penalty}"
        return f"beam:{self.beam}{penalty}|maxlen:{self.max_length}"
