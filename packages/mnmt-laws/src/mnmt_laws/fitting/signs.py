"""On which side of predictions measured values lie, in words."""

from __future__ import annotations

import numpy as np

from mnmt_laws.arrays import Array

_WORDS = (
    "none",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def count_in_words(count: int) -> str:
    """Return a number up to twelve as a word, and others in digits."""
    return _WORDS[count] if 0 <= count < len(_WORDS) else str(count)


def describe_signs(errors: Array) -> str:
    """Return on which side of their predictions measured values lie.

    Args:
        errors: (n,) measured less predicted, NaN where nothing was predicted.

    Returns:
        `all ten above the prediction`, `all ten below the prediction`, or `7 of 10 above the prediction`.
    """
    known = errors[np.isfinite(errors)]
    count, above = len(known), int((known > 0).sum())
    if not count:
        return "nothing was predicted"
    if above in (0, count):
        who = "the one value is" if count == 1 else f"all {count_in_words(count)}"
        return f"{who} {'above' if above else 'below'} the prediction"
    return f"{above} of {count} above the prediction"
