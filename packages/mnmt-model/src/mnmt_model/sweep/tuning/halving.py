"""Successive halving over learning rates and batches around the present ones (Jamieson & Talwalkar 2016).

Candidates lie on a grid of powers of two. All are trained for a short while, the better half of them twice
as long, and so on. A rung ends only when its best candidate has neighbours on every side, so a grid becomes
wider where its best is at an edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

WIDEST = 8
"""The most doublings, or halvings, of the present rate or batch that are tried."""


@dataclass(frozen=True, order=True, kw_only=True)
class Candidate:
    """Settings, as powers of two times the present ones."""

    rate: int = 0
    batch: int = 0


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How thorough the search is."""

    rungs: int = 2
    """Times that candidates are trained, each time twice as long as before and the better half of them."""
    reach: int = 2
    """Doublings and halvings of the present rate that are tried at first."""
    batch: bool = False
    """Whether batches of twice and half the tokens are tried too, in as many tokens in all."""

    def __post_init__(self) -> None:
        for name in ("rungs", "reach"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {getattr(self, name)}.")


@dataclass
class Halving:
    """The search for one model: says what to train next, and takes the losses.

    Args:
        config: How thorough it is.
    """

    config: SearchConfig
    rung: int = 0
    """The rung whose candidates are trained now, from 0."""
    losses: list[dict[Candidate, float]] = field(default_factory=list)
    """{candidate: loss} of each rung; infinity for one that failed."""
    _asked: list[Candidate] = field(default_factory=list)

    def __post_init__(self) -> None:
        reach = self.config.reach
        self._asked = [Candidate(rate=rate) for rate in range(-reach, reach + 1)]
        self.losses.append({})

    def ask(self) -> list[Candidate]:
        """Return the candidates of the present rung that have no loss yet; none when the search is over."""
        while not (missing := self._missing()):
            if wider := self._missing_neighbours():
                self._asked += wider
            elif self.rung + 1 < self.config.rungs:
                self._asked = self._better_half()
                self.losses.append({})
                self.rung += 1
            else:
                return []
        return missing

    def tell(self, candidate: Candidate, loss: float) -> None:
        """Take the loss of a candidate of the present rung."""
        self.losses[self.rung][candidate] = loss

    @property
    def best(self) -> Candidate:
        """The candidate of the lowest loss in the present rung."""
        losses = self.losses[self.rung]
        return min(losses, key=lambda candidate: losses[candidate])

    def _missing(self) -> list[Candidate]:
        return [candidate for candidate in self._asked if candidate not in self.losses[self.rung]]

    def _missing_neighbours(self) -> list[Candidate]:
        """Return the neighbours of the best candidate that this rung has not."""
        if self.losses[self.rung][self.best] == inf:  # Every rate was too high.
            lowest = min(self._asked)
            return [Candidate(rate=lowest.rate - 1)] if lowest.rate > -WIDEST else []
        return [near for near in self._neighbours(self.best) if near not in self._asked]

    def _neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        # The length of a brief rung says little about a batch, so batches are tried in the last one.
        last = self.rung + 1 == self.config.rungs
        for batch in (-1, 0, 1) if self.config.batch and last else (0,):
            for rate in (-1, 1) if batch == 0 else (-1, 0, 1):
                near = Candidate(rate=candidate.rate + rate, batch=candidate.batch + batch)
                if max(abs(near.rate), abs(near.batch)) <= WIDEST:
                    yield near

    def _better_half(self) -> list[Candidate]:
        losses = self.losses[self.rung]
        order = sorted(losses, key=lambda candidate: losses[candidate])
        return sorted(order[: (len(order) + 1) // 2])
