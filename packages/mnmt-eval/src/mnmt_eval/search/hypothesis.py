"""What search finds."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_eval.protocol import EOS


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One translation as token ids, after the prefix if one was forced."""

    tokens: tuple[int, ...]
    """Target tokens, the final `</s>` included; without one, the maximal length cut it off."""

    token_log_probs: tuple[float, ...]
    """Log-probability of each token given the source, the prefix and the tokens before it, in nats."""

    log_prob: float
    """Their sum."""

    score: float
    """`log_prob` divided by the length penalty; what hypotheses are ranked by."""

    @property
    def is_complete(self) -> bool:
        """Whether it ends with `</s>`."""
        return self.tokens[-1] == EOS
