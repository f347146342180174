"""Ranks of systems as the WMT general task prints them: ranges and clusters, from significant differences."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Rank:
    """A system's range of ranks and its cluster among others."""

    best: int
    """1 + the number of systems that are significantly better."""
    worst: int
    """The number of systems less the number of significantly worse ones."""
    cluster: int
    """From 1. Every system of a cluster is significantly better than every system of later clusters."""

    def __str__(self) -> str:
        return str(self.best) if self.best == self.worst else f"{self.best}–{self.worst}"


def rank_systems(
    values: Mapping[str, float], differing: Collection[frozenset[str]], *, higher_is_better: bool = True
) -> dict[str, Rank]:
    """Rank systems, best first (Kocmi et al. 2024, *Findings of the WMT24 general machine translation task*).

    Args:
        values: {system: its value}.
        differing: The pairs of systems that differ significantly.
        higher_is_better: Whether better systems have higher values.
    """
    order = sorted(values, key=lambda name: -values[name] if higher_is_better else values[name])
    ranks, cluster = {}, 1
    for place, name in enumerate(order):
        above, below = order[:place], order[place + 1 :]
        ranks[name] = Rank(
            best=1 + sum(frozenset((name, other)) in differing for other in above),
            worst=len(order) - sum(frozenset((name, other)) in differing for other in below),
            cluster=cluster,
        )
        cluster += all(frozenset((one, other)) in differing for one in (*above, name) for other in below)
    return ranks
