from collections.abc import Callable
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model.sweep.tuning.halving import WIDEST, Candidate, Halving, SearchConfig

Loss = Callable[[Candidate, int], float]


def search(loss: Loss, **options: int) -> tuple[Halving, list[list[Candidate]]]:
    """Run a search to its end; also return what it asked for, time by time."""
    halving, asked = Halving(SearchConfig(**options)), []
    while candidates := halving.ask():
        asked.append(candidates)
        for candidate in candidates:
            halving.tell(candidate, loss(candidate, halving.rung))
    return halving, asked


@given(best=st.integers(-WIDEST + 1, WIDEST - 1), rungs=st.integers(1, 3), reach=st.integers(1, 3))
def test_a_bowl_is_searched_to_its_bottom_wherever_that_is(best: int, rungs: int, reach: int) -> None:
    halving, _ = search(lambda candidate, rung: (candidate.rate - best) ** 2, rungs=rungs, reach=reach)
    assert halving.best == Candidate(rate=best)
    rates = {candidate.rate for candidate in halving.losses[-1]}
    assert {best - 1, best + 1} <= rates


@given(losses=st.lists(st.floats(0, 1), min_size=2 * WIDEST + 1, max_size=2 * WIDEST + 1))
def test_any_losses_end_the_search_at_a_candidate_below_its_neighbours(losses: list[float]) -> None:
    halving, _ = search(lambda candidate, rung: losses[candidate.rate + WIDEST])
    last, best = halving.losses[-1], halving.best
    for rate in (best.rate - 1, best.rate + 1):
        if abs(rate) <= WIDEST:
            assert last[best] <= last[Candidate(rate=rate)]


def test_half_of_the_candidates_go_on_and_none_is_asked_for_twice() -> None:
    halving, asked = search(lambda candidate, rung: abs(candidate.rate - 0.1), rungs=3)
    assert [len(candidates) for candidates in asked] == [5, 3, 2, 1]
    assert [len(losses) for losses in halving.losses] == [5, 3, 3]


def test_rates_that_all_fail_are_lowered_until_one_does_not() -> None:
    halving, _ = search(lambda candidate, rung: inf if candidate.rate > -4 else 1.0 - candidate.rate)
    assert halving.best == Candidate(rate=-4)
    assert search(lambda candidate, rung: inf)[0].losses[0].keys() >= {Candidate(rate=-WIDEST)}


def test_batches_are_tried_in_the_last_rung_alone_where_asked() -> None:
    def loss(candidate: Candidate, rung: int) -> float:
        return float(abs(candidate.rate - candidate.batch) + abs(candidate.batch - 1))

    halving, _ = search(loss, batch=True)
    assert {candidate.batch for candidate in halving.losses[0]} == {0}
    assert halving.best == Candidate(rate=1, batch=1)
    assert search(loss)[0].best.batch == 0


def test_a_search_without_rungs_is_refused() -> None:
    with pytest.raises(ValueError, match="`rungs` must be at least 1, but is 0"):
        SearchConfig(rungs=0)
