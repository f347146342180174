import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.store.ragged import Ragged, offsets_of
from mnmt_data.store.segments import SegmentInfo, write_segment
from mnmt_data.store.shards import Shard, segment_path
from mnmt_data.stream.bucketing import batch_by_tokens, check_pairs_fit

pair_lengths = st.lists(st.tuples(st.integers(1, 15), st.integers(1, 15)), max_size=60)


@pytest.fixture
def shard(tmp_path):
    def write(*segments):
        """A shard of pairs of these lengths, segment by segment."""
        folder = tmp_path / "train.en-de"
        folder.mkdir()
        for number, lengths in enumerate(segments):
            src, tgt = (
                Ragged(np.ones(sum(side), dtype=np.uint16), offsets_of(side))
                for side in np.array(lengths, dtype=np.int64).reshape(-1, 2).T
            )
            write_segment(segment_path(folder, number), src, tgt)
        return Shard.open(folder)

    return write


def greedy(lengths, batch_tokens):
    """One pair at a time, as the definition says."""
    batches, batch = [], []
    for pair in sorted(range(len(lengths)), key=lambda i: (lengths[i][1], lengths[i][0])):
        grown = [*batch, pair]
        widths = max(lengths[i][0] for i in grown) + max(lengths[i][1] for i in grown)
        if batch and len(grown) * widths > batch_tokens:
            batches.append(batch)
            grown = [pair]
        batch = grown
    return [*batches, batch] if batch else batches


@given(lengths=pair_lengths, batch_tokens=st.integers(1, 300))
def test_cutting_agrees_with_growing_pair_by_pair(lengths, batch_tokens):
    src, tgt = np.array(lengths, dtype=np.int64).reshape(-1, 2).T
    batches = batch_by_tokens(src, tgt, batch_tokens=batch_tokens)
    assert [batch.tolist() for batch in batches] == greedy(lengths, batch_tokens)


def test_pairs_of_one_length_make_consecutive_full_batches():
    src, tgt = np.full(10, 4), np.full(10, 6)
    batches = batch_by_tokens(src, tgt, batch_tokens=35)
    assert [batch.tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_a_pair_as_long_as_the_budget_passes(shard):
    check_pairs_fit(shard([(3, 4)], [(5, 5)]), batch_tokens=10)


def test_the_longest_pair_of_all_segments_is_told(shard):
    pairs = shard([(3, 4), (6, 5)], [(20, 3)])
    with pytest.raises(DataError) as raised:
        check_pairs_fit(pairs, batch_tokens=10)
    message = f"{pairs.path}: the longest pair has 23 tokens; it must have at most `batch_tokens` (10)."
    assert str(raised.value) == message


def test_a_shard_without_pairs_is_named(shard):
    pairs = shard([], [])
    with pytest.raises(DataError) as raised:
        check_pairs_fit(pairs, batch_tokens=10)
    assert str(raised.value) == f"{pairs.path}: the shard holds no sentence pairs; at least one is needed."


def test_a_corpus_without_a_path_is_checked_too():
    class InMemory:
        info = SegmentInfo(pairs=1, src_tokens=5, tgt_tokens=6, longest=11, longest_side=6)

    check_pairs_fit(InMemory(), batch_tokens=11)
    with pytest.raises(DataError, match=r"^the longest pair has 11 tokens; it must have at most"):
        check_pairs_fit(InMemory(), batch_tokens=10)
