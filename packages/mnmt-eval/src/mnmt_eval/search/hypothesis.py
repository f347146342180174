"""What search finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mnmt_eval.protocol import EOS, PAD


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One translation as token ids."""

    tokens: tuple[int, ...]
    """Target tokens, the final `</s>` included; without one, the maximal length cut it off."""

    score: float
    """Sum of the tokens' log-probabilities, in nats."""

    normalised_score: float
    """`score` divided by the length penalty."""

    @property
    def is_complete(self) -> bool:
        """Whether it ends with `</s>`."""
        return self.tokens[-1] == EOS


def hypothesis(padded: Sequence[int], score: float, normalised_score: float) -> Hypothesis:
    """A hypothesis from its tokens, which padding may follow."""
    length = padded.index(PAD) if PAD in padded else len(padded)
    return Hypothesis(tokens=tuple(padded[:length]), score=score, normalised_score=normalised_score)
