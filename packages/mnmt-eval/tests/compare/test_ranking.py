from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.compare import Rank, rank_systems

NAMES = "abcde"
DIFFERING = st.sets(st.sampled_from([frozenset(pair) for pair in combinations(NAMES, 2)]))
VALUES = st.permutations(range(len(NAMES))).map(lambda values: dict(zip(NAMES, values, strict=True)))


def test_a_line_parts_systems_of_which_each_beats_each() -> None:
    values = {"a": 60.0, "b": 58.0, "c": 57.5, "d": 55.0}
    differing = {frozenset(pair) for pair in ("ab", "ac", "ad", "bd")}
    assert rank_systems(values, differing) == {
        "a": Rank(best=1, worst=1, cluster=1),
        "b": Rank(best=2, worst=3, cluster=2),
        "c": Rank(best=2, worst=4, cluster=2),
        "d": Rank(best=3, worst=4, cluster=2),
    }
    assert list(rank_systems(values, differing, higher_is_better=False)) == ["d", "c", "b", "a"]
    assert [str(rank) for rank in rank_systems(values, differing).values()] == ["1", "2–3", "2–4", "3–4"]


def wmt24_clusters(order: list[str], differing: set[frozenset[str]]) -> list[int]:
    """Walk down the list as the published script of WMT24 does: until where must a cluster reach?"""
    clusters, cluster, until = [], 1, -1
    for place, one in enumerate(order):
        if until <= place:
            until = -1
        for later in range(place + 1, len(order)):
            if frozenset((one, order[later])) not in differing:
                until = max(later, until)
        clusters.append(cluster)
        cluster += until == -1
    return clusters


@given(VALUES, DIFFERING)
def test_clusters_are_those_of_wmt24(values: dict[str, int], differing: set[frozenset[str]]) -> None:
    ranks = rank_systems(values, differing)
    clusters = [rank.cluster for rank in ranks.values()]
    assert clusters == wmt24_clusters(list(ranks), differing)


@given(VALUES, DIFFERING)
def test_ranks_are_ranges_that_significant_wins_and_losses_leave(
    values: dict[str, int], differing: set[frozenset[str]]
) -> None:
    for name, rank in rank_systems(values, differing).items():
        others = [other for other in NAMES if frozenset((name, other)) in differing]
        assert rank.best == 1 + sum(values[other] > values[name] for other in others)
        assert rank.worst == len(NAMES) - sum(values[other] < values[name] for other in others)
