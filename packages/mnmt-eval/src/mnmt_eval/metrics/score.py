"""A metric's value together with all that makes it reproducible."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Score:
    """The value of a metric on a corpus."""

    name: str
    """`bleu` or `chrf`."""

    value: float
    """From 0 to 100."""

    signature: str
    """sacreBLEU's: references, case, tokenizer, smoothing, version."""
