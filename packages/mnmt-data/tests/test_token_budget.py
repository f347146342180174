from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.shards import Ragged, Shard, offsets_of
from mnmt_data.token_budget import check_pairs, cut_batches

pair_lengths = st.lists(st.tuples(st.integers(1, 15), st.integers(1, 15)), max_size=60)


def shard(lengths):
    src, tgt = (
        Ragged(np.ones(sum(side), dtype=np.uint16), offsets_of(side)) for side in zip(*lengths, strict=True)
    )
    return Shard(path=Path("train.en-de.arrow"), src=src, tgt=tgt)


def greedy(lengths, batch_tokens):
    """One pair at a time, as the definition says."""
    batches, batch = [], []
    for pair in sorted(range(len(lengths)), key=lambda i: (lengths[i][1], lengths[i][0])):
        grown = [*batch, pair]
        widths = max(lengths[i][0] for i in grown) + max(lengths[i][1] for i in grown)
        if len(grown) * widths > batch_tokens:
            batches.append(batch)
            grown = [pair]
        batch = grown
    return [*batches, batch] if batch else batches


@given(lengths=pair_lengths, batch_tokens=st.integers(30, 300))
def test_cutting_agrees_with_growing_pair_by_pair(lengths, batch_tokens):
    src, tgt = np.array(lengths, dtype=np.int64).reshape(-1, 2).T
    batches = cut_batches(src, tgt, batch_tokens=batch_tokens)
    assert [batch.tolist() for batch in batches] == greedy(lengths, batch_tokens)


def test_pairs_of_one_length_make_consecutive_full_batches():
    src, tgt = np.full(10, 4), np.full(10, 6)
    batches = cut_batches(src, tgt, batch_tokens=35)
    assert [batch.tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_a_pair_as_long_as_the_budget_passes():
    check_pairs(shard([(3, 4), (5, 5)]), batch_tokens=10)


def test_the_first_pair_that_is_too_long_is_named():
    message = r"train\.en-de\.arrow: row 1 has 11 tokens; a pair must have at most `batch_tokens` \(10\)\."
    with pytest.raises(DataError, match=message):
        check_pairs(shard([(3, 4), (6, 5), (20, 20)]), batch_tokens=10)


def test_a_shard_without_pairs_is_named():
    empty = Ragged.from_rows([])
    with pytest.raises(DataError, match=r"train\.en-de\.arrow: the shard holds no sentence pairs"):
        check_pairs(Shard(path=Path("train.en-de.arrow"), src=empty, tgt=empty), batch_tokens=10)
