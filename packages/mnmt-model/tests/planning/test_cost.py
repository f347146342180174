from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model.planning.cost import Cost, Rates
from mnmt_model.planning.traffic import StepTraffic, Traffic

NONE = Traffic()
TRAFFIC = StepTraffic(
    tokens=Traffic(size=20, messages=12, rounds=4),
    dense_gradients=Traffic(size=30, messages=6, rounds=6),
    dense_weights=NONE,
    expert_gradients=NONE,
    expert_weights=NONE,
)
COST = Cost(
    flops=300,
    executed_flops=600,
    traffic=TRAFFIC,
    assumes_even_choices=False,
    hides_tokens=False,
    rates=Rates(flops_per_second=100.0, exchange_bytes_per_second=10.0),
)


def at(**rates: float | None) -> Cost:
    return replace(COST, rates=replace(COST.rates, **rates))


def test_times_follow_from_rates() -> None:
    assert (COST.compute_seconds, COST.exchange_seconds) == (6, 5)
    assert at(flops_per_second=50.0).compute_seconds == 12
    assert at(exchange_bytes_per_second=1.0).exchange_seconds == 50


def test_each_message_takes_the_latency_besides_its_bytes() -> None:
    slow = at(exchange_latency_seconds=0.5)
    assert slow.seconds(TRAFFIC.tokens) == 0.5 * 12 + 2
    assert slow.seconds(TRAFFIC.tokens, together=True) == 0.5 * 4 + 2
    assert slow.exchange_seconds == 0.5 * 18 + 5


def test_gradients_can_travel_while_devices_compute_and_tokens_only_in_chunks() -> None:
    assert COST.most_seconds == 6 + 5
    assert COST.least_seconds == 6 + 2
    assert replace(COST, hides_tokens=True).least_seconds == 6
    assert at(exchange_bytes_per_second=1.0).least_seconds == 50


@given(
    sizes=st.tuples(*[st.integers(0, 1000)] * 4),
    messages=st.integers(1, 9),
    latency=st.floats(0, 1),
    hides_tokens=st.booleans(),
)
def test_the_lower_bound_is_below_the_upper_one(
    sizes: tuple[int, int, int, int], messages: int, latency: float, hides_tokens: bool
) -> None:
    tokens, *others = (Traffic(size=size, messages=messages, rounds=messages) for size in sizes)
    traffic = StepTraffic(
        tokens=replace(tokens, rounds=1),
        dense_gradients=others[0],
        dense_weights=others[1],
        expert_gradients=others[2],
        expert_weights=NONE,
    )
    cost = replace(at(exchange_latency_seconds=latency), traffic=traffic, hides_tokens=hides_tokens)
    least, most = cost.least_seconds, cost.most_seconds
    assert cost.compute_seconds is not None
    assert least is not None
    assert most is not None
    assert cost.compute_seconds <= least <= most * (1 + 1e-12)


def test_a_time_is_unknown_without_its_rate_unless_nothing_is_exchanged() -> None:
    silent = at(exchange_bytes_per_second=None)
    assert silent.compute_seconds == 6
    assert silent.exchange_seconds is silent.most_seconds is silent.least_seconds is None
    alone = replace(silent, traffic=TRAFFIC * 0)
    assert (alone.most_seconds, alone.least_seconds) == (6, 6)
    assert at(flops_per_second=None).compute_seconds is None


def test_executed_flops_are_compared_with_useful_ones() -> None:
    assert COST.executed_over_useful == pytest.approx(2)
