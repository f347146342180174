"""Every exchange of two systems' outputs, where the exchanges that differ are few enough to be counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.metrics.protocol import Floats

_AT_MOST = 2**16
"""Most exchanges to make: those of 16 sentences that differ."""
_GLANCE = 100
"""Sentences that mostly show that there are too many exchanges, without sorting them all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Exchanges:
    """The sums of both systems' statistics after each exchange."""

    baseline: Floats
    """(exchanges, k)."""
    system: Floats
    """(exchanges, k)."""
    weights: Floats
    """The probability of each exchange, (exchanges,)."""


def every_exchange(baseline: Floats, system: Floats) -> Exchanges | None:
    """Make every exchange of sentences that changes the sums; each sentence is exchanged with probability ½.

    Sentences with equal statistics do not matter. Of m sentences that differ by the same statistics it only
    matters how many have the larger ones in the baseline, which is binomial: m + 1 exchanges in place of 2ᵐ.
    So for language accuracy between two languages the test is McNemar's.

    Args:
        baseline: The statistics of one system, (sentences, k).
        system: The statistics of the other on the same sentences, (sentences, k).

    Returns:
        The exchanges; None if there are more than 65,536.
    """
    gaps = baseline - system
    gaps = gaps[gaps.any(axis=1)]
    for part in (gaps[:_GLANCE], gaps):
        distinct, counts, in_baseline = _distinct(part)
        sizes = [count + 1 for count in counts]
        if prod(sizes) > _AT_MOST:
            return None
    numbers = np.indices(sizes).reshape(len(sizes), prod(sizes))
    moved = (numbers - in_baseline[:, None]).T @ distinct
    return Exchanges(
        baseline=baseline.sum(axis=0) + moved,
        system=system.sum(axis=0) - moved,
        weights=reduce(np.multiply.outer, map(_binomial, counts), np.ones(())).ravel(),
    )


def _distinct(gaps: Floats) -> tuple[Floats, list[int], NDArray[np.int_]]:
    """Return the gaps that differ in more than the sign, (groups, k).

    Returns:
        These gaps, the number of each with either sign, and with the sign that it is returned with.
    """
    first = np.take_along_axis(gaps, (gaps != 0).argmax(axis=1)[:, None], axis=1)
    unsigned = gaps * np.sign(first) + 0.0  # no negative zeros
    distinct, places, counts = np.unique(unsigned, axis=0, return_inverse=True, return_counts=True)
    return distinct, counts.tolist(), np.bincount(places[first[:, 0] > 0], minlength=len(counts))


def _binomial(count: int) -> Floats:
    """Return the probability of 0 to `count` heads of as many coins."""
    logs = np.append(0.0, np.cumsum(np.log(np.arange(1, count + 1))))  # of factorials
    weights = np.exp(logs[-1] - logs - logs[::-1] - count * np.log(2))
    return np.asarray(weights / weights.sum())
