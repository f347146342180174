"""A metric's value together with all that makes it reproducible."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Score:
    """The value of a metric on a corpus."""

    name: str
    """The metric's name, such as `chrf++`."""

    value: float
    """On the metric's own scale: from 0 to 100 but for `bleurt` and `comet`; `ter` may exceed 100."""

    signature: str
    """The metric's signature."""
