"""The best places to cut a text that is too long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.translate.boundaries import CLAUSE, INNER_LEVELS, WORD, inner_places

WORD_COST = 1.0
"""The cost of a cut between words; that of a further part is 1, that of a cut between clauses 0."""

INNER_COST = 2.0
"""The cost of a cut inside a word, at the best level of `INNER_LEVELS`; each further level costs 1 more."""

INNER_TOKENS = 2
"""Tokens that a cut inside a word adds, since pieces of the vocabulary are cut too."""

PLACES_PER_PART = 16
"""The places inside a word that are considered for each part that it must be cut into."""

CHUNK = re.compile(r"\s*\S{1,64}\s*")
"""Words, and pieces of long ones, whose tokens are counted."""

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TokenCounts:
    """The tokens of a text before its places, exact at the ends of words and estimated inside them."""

    ends: Places
    """`(chunks + 1,)` 0 and the place after each chunk."""
    tokens: Floats
    """`(chunks + 1,)` the tokens before these places."""

    @classmethod
    def of(cls, chunks: Sequence[str], tokens: NDArray[np.int64], *, total: int) -> Self:
        """Return the counts of a text.

        Args:
            chunks: The text in words and pieces of long ones.
            tokens: `(chunks,)` the tokens of each.
            total: The tokens of the whole text; counted in pieces, long words have more.
        """
        scale = total / max(int(tokens.sum()), 1)
        ends = np.cumsum([0, *map(len, chunks)])
        return cls(ends=ends, tokens=np.cumsum([0.0, *(tokens * scale)]))

    def before(self, places: Places) -> Floats:
        """Return the tokens before each place."""
        return np.interp(places, self.ends, self.tokens)


def cut_places(text: str, counts: TokenCounts, *, room: int) -> list[int]:
    """Return the best places to cut a text so that every part has about `room` tokens at most.

    Args:
        text: A text of more tokens.
        counts: Its tokens.
        room: The largest number of tokens of a part.
    """
    places, costs = possible_cuts(text, counts, room=room)
    extra = np.where(costs >= INNER_COST, min(INNER_TOKENS, room // 8), 0)
    cuts = cheapest_cuts(counts.before(places), costs, extra=extra, room=room)
    return [int(place) for place in places[cuts]]


def possible_cuts(text: str, counts: TokenCounts, *, room: int) -> tuple[Places, Floats]:
    """Return the places where a text may be cut, with its start and end, and the cost of a cut at each.

    They are the ends of clauses and words, and places inside words that have more than `room` tokens: from
    the first of `INNER_LEVELS` that suffices.
    """
    costs = {match.end(): WORD_COST for match in WORD.finditer(text)}
    costs |= {match.end(): 0.0 for match in CLAUSE.finditer(text)}
    costs |= {0: 0.0, len(text): 0.0}
    for level, is_sparse in product(range(len(INNER_LEVELS)), (True, False)):
        places = np.array(sorted(costs))
        for gap in np.flatnonzero(np.diff(counts.before(places)) > room).tolist():
            start, end = int(places[gap]), int(places[gap + 1])
            inner = np.fromiter(inner_places(text, start, end, level), dtype=np.int64)
            if is_sparse:
                inner = _sparse(inner, counts.before(inner), step=room / PLACES_PER_PART)
            costs |= dict.fromkeys(inner.tolist(), INNER_COST + level)
    places = np.array(sorted(costs))
    return places, np.array([costs[place] for place in places.tolist()])


def _sparse(places: Places, tokens: Floats, *, step: float) -> Places:
    """Return the first place in every `step` tokens."""
    _, first = np.unique((tokens / step).astype(np.int64), return_index=True)
    return places[first]


def cheapest_cuts(tokens: Floats, costs: Floats, *, extra: NDArray[np.int64], room: int) -> Places:
    """Choose cuts by dynamic programming, so that the costs of all parts and cuts have the least sum.

    A part of n tokens costs 1 + (n / room)²: few parts are best, and parts of similar length. Only a part
    between neighbouring places may have more than `room` tokens.

    Args:
        tokens: `(places,)` the tokens before each place; the first place is the text's start, the last its
            end.
        costs: `(places,)` the cost of a cut at each.
        extra: `(places,)` the tokens that a part has in addition if it begins there.
        room: The largest number of tokens of a part.

    Returns:
        The numbers of the places to cut at, in order.
    """
    # The part from place i to j has tokens[j] - tokens[i] + extra[i] tokens; `first[j]` is the earliest i
    # whose part fits. The minimum from behind makes the starts ascend, as searchsorted needs.
    starts = np.minimum.accumulate((tokens - extra)[::-1])[::-1]
    first = np.minimum(np.searchsorted(starts, tokens - room), np.arange(len(tokens)) - 1)
    shares = tokens / room
    total, previous = np.zeros(len(tokens)), np.zeros(len(tokens), dtype=np.int64)
    for place in range(1, len(tokens)):
        start = first[place]
        # total[j] = min over i of total[i] + 1 + (n / room)² + costs[j]
        lengths = shares[place] - shares[start:place]
        through = total[start:place] + lengths * lengths
        best = through.argmin()
        total[place], previous[place] = through[best] + 1 + costs[place], start + best
    cuts, place = [], int(previous[-1])
    while place:
        cuts.append(place)
        place = int(previous[place])
    return np.array(cuts[::-1], dtype=np.int64)
