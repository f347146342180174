"""How many processes a token travels to, against every way to choose its experts."""

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_model.transformer.experts.ranks import rows_per_token, sends_tokens
from mnmt_model.transformer.model_config import ModelConfig


@settings(max_examples=40)
@given(data=st.data(), ranks=st.sampled_from([1, 2, 3, 4]), local=st.integers(1, 3))
def test_rows_per_token_is_the_mean_over_all_choices(data: st.DataObject, ranks: int, local: int) -> None:
    num_experts = max(2, ranks * local)
    local = num_experts // ranks
    chosen = data.draw(st.integers(1, min(8, num_experts)))
    every = combinations(range(num_experts), chosen)
    expected = fmean(len({expert // local for expert in experts}) for experts in every)
    config = ModelConfig(num_experts=num_experts, experts_per_token=chosen, renormalise="never")
    assert rows_per_token(config, ranks=ranks) == pytest.approx(expected)


@pytest.mark.parametrize(("ranks", "capacity", "sends"), [(2, 4, False), (2, 5, True), (1, 1000, False)])
def test_tokens_travel_where_there_are_twice_as_many_slots(ranks: int, capacity: int, sends: bool) -> None:
    # 1.508 rows a token: 2 (1 - C(32, 2) / C(64, 2)); 256 and 320 slots.
    config = ModelConfig(num_experts=64)
    assert sends_tokens(config, ranks=ranks, tokens=100, capacity=capacity) is sends
