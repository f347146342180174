import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.store.ragged import Ragged, offsets_of
from mnmt_data.store.segments import SegmentInfo, write_segment
from mnmt_data.store.shards import Shard, segment_path
from mnmt_data.stream.bucketing import batch_by_tokens, check_pairs_fit, split_evenly

pair_lengths = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=80)


def sides(lengths):
    return np.array(lengths, dtype=np.int64).reshape(-1, 2).T


def padded(parts, src, tgt):
    """Tokens of all parts, padding included."""
    return sum(len(part) * (src[part].max() + tgt[part].max()) for part in parts)


def corpus(seed, size=2000):
    """Lengths as sentences have them: skewed, and alike on both sides."""
    random = np.random.default_rng(seed)
    src = np.clip(random.lognormal(3, 0.6, size), 2, 200).astype(np.int64)
    return src, np.clip(src * random.lognormal(0.1, 0.25, size), 2, 250).astype(np.int64)


@given(lengths=pair_lengths, data=st.data())
def test_every_pair_is_in_one_of_the_parts_and_none_is_empty(lengths, data):
    src, tgt = sides(lengths)
    parts = split_evenly(src, tgt, count := data.draw(st.integers(1, len(lengths))))
    assert len(parts) == count
    assert all(len(part) for part in parts)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))


@given(lengths=pair_lengths.filter(lambda lengths: sum(map(sum, lengths))), data=st.data())
def test_tokens_differ_from_an_equal_share_by_the_longest_pair_at_most(lengths, data):
    """Where no pair is longer than a share; a longer one takes a part's place and more."""
    src, tgt = sides(lengths)
    tokens = src + tgt
    most = min(len(lengths), int(tokens.sum() // tokens.max()))
    parts = split_evenly(src, tgt, count := data.draw(st.integers(1, most)))
    shares = np.array([tokens[part].sum() for part in parts])
    assert np.abs(shares - tokens.sum() / count).max() <= tokens.max()


@given(st.integers(1, 20), st.integers(21, 60))
def test_one_long_pair_leaves_something_to_every_part(parts, size):
    src = np.ones(size, dtype=np.int64)
    src[7] = 10**6
    assert all(len(part) for part in split_evenly(src, np.ones(size, dtype=np.int64), parts))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("parts", [1, 2, 16, 100])
def test_padding_is_not_above_that_of_a_random_order(parts, seed):
    src, tgt = corpus(seed)
    shuffled = np.array_split(np.random.default_rng(seed).permutation(len(src)), parts)
    assert padded(split_evenly(src, tgt, parts), src, tgt) <= padded(shuffled, src, tgt)


@given(pair_lengths, st.integers(1, 9))
def test_more_parts_than_pairs_are_refused(lengths, more):
    src, tgt = sides(lengths)
    parts = len(lengths) + more
    message = rf"`parts` must be at most the number of pairs \({len(lengths)}\), but is {parts}\."
    with pytest.raises(ValueError, match=message):
        split_evenly(src, tgt, parts)


short_lengths = st.lists(st.tuples(st.integers(1, 15), st.integers(1, 15)), max_size=60)


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


@given(lengths=short_lengths, batch_tokens=st.integers(1, 300))
def test_cutting_agrees_with_growing_pair_by_pair(lengths, batch_tokens):
    src, tgt = np.array(lengths, dtype=np.int64).reshape(-1, 2).T
    batches = batch_by_tokens(src, tgt, batch_tokens=batch_tokens)
    assert [batch.tolist() for batch in batches] == greedy(lengths, batch_tokens)


def test_pairs_of_one_length_make_consecutive_full_batches():
    src, tgt = np.full(10, 4), np.full(10, 6)
    batches = batch_by_tokens(src, tgt, batch_tokens=35)
    assert [batch.tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


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
