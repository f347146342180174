"""Caches that grow in place, and look as if they did not."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mnmt_model.transformer.decoding.cache import BLOCK, KeysValues, KeyValueCache

ROWS, HEADS, D_HEAD = 3, 2, 4


def new(length: int) -> KeysValues:
    keys, values = torch.randn(2, ROWS, length, HEADS, D_HEAD).transpose(2, 3)
    return KeysValues(keys=keys, values=values)


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from([1, 5]), st.permutations(range(ROWS))), max_size=12
    )
)
def test_no_cache_changes_when_another_grows_from_it(steps: list[tuple[int, int, list[int]]]) -> None:
    """Each step continues any cache there is, selects rows of it or not, and all keep what they hold."""
    first = new(2)
    caches: list[tuple[KeyValueCache, Tensor, Tensor]] = [(KeyValueCache.of(first), first.keys, first.values)]
    for which, length, order in steps:
        cache, keys, values = caches[which % len(caches)]
        if which % 2:
            rows = torch.tensor(order)
            cache, keys, values = cache.select(rows), keys[rows], values[rows]
        added = new(length)
        grown = torch.cat([keys, added.keys], dim=2), torch.cat([values, added.values], dim=2)
        caches.append((cache.append(added), *grown))
    for cache, keys, values in caches:
        assert torch.equal(cache.keys, keys)
        assert torch.equal(cache.values, values)


def test_growing_copies_once_a_block() -> None:
    cache = KeyValueCache.empty(new(1))
    places = []
    for _ in range(BLOCK + 1):
        cache = cache.append(new(1))
        places.append(cache.keys.data_ptr())
    assert len(set(places)) == 1
