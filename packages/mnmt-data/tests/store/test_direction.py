"""Pairs on disk, read in either direction and with tags: as if they had been written so."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.store.direction import Direction, insert_tag
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segments import SegmentInfo, total, write_segment
from mnmt_data.store.shards import Shard, segment_path
from mnmt_data.stream import BatchStream, Mixture, eval_batches

END, TAG = 1, 4
SENTENCES = st.lists(st.integers(5, 70_000), max_size=6).map(lambda ids: [*ids, END])
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=12)
DIRECTIONS = st.builds(
    Direction,
    swapped=st.booleans(),
    target_tag=st.sampled_from(["prepended", "appended", "none"]),
    tag=st.just(TAG),
)


def tagged(source, target_tag):
    """Put the tag in its place, one list at a time."""
    return {"prepended": [TAG, *source], "appended": [*source[:-1], TAG, END], "none": source}[target_tag]


def pairs_as_read(pairs, direction):
    sides = [pair[::-1] if direction.swapped else pair for pair in pairs]
    return [(tagged(src, direction.target_tag), tgt) for src, tgt in sides]


def ragged(rows):
    return Ragged.from_rows([np.array(row) for row in rows])


def write(folder, pairs, *, segments, block_rows=1):
    """Write pairs into some segments; return the counts of each."""
    folder.mkdir()
    parts = [[pairs[row] for row in rows] for rows in np.array_split(np.arange(len(pairs)), segments)]
    return [
        write_segment(
            segment_path(folder, number),
            *(ragged([pair[side] for pair in part]) for side in (0, 1)),
            block_rows=block_rows,
        )
        for number, part in enumerate(parts)
    ]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("shards")


def both(folder, pairs, direction, **form):
    """Return the shard that is read so, and one that was written so."""
    as_read = pairs_as_read(pairs, direction)
    write(folder / "stored", pairs, **form)
    info = total(write(folder / "expected", as_read, **form))
    return Shard.open(folder / "stored", direction=direction, info=info), Shard.open(folder / "expected")


def assert_same_rows(one, other):
    for side, expected in zip(one, other, strict=True):
        assert [row.tolist() for row in side] == [row.tolist() for row in expected]


@given(PAIRS, DIRECTIONS, st.data(), st.integers(1, 3), st.sampled_from([1, 2]))
def test_rows_are_those_of_a_shard_written_so(folders, pairs, direction, data, segments, block_rows):
    shard, expected = both(folders(), pairs, direction, segments=segments, block_rows=block_rows)
    rows = np.array(data.draw(st.permutations(range(len(pairs)))), dtype=np.int64)
    assert_same_rows(shard.gather(rows), expected.gather(rows))
    assert_same_rows(next(shard.blocks()), next(expected.blocks()))
    for lengths, of_rows, wanted in zip(
        shard.lengths(rows), shard.gather(rows), expected.lengths(rows), strict=True
    ):
        assert lengths.tolist() == of_rows.lengths.tolist() == wanted.tolist()
    assert shard.info == expected.info


@given(PAIRS, DIRECTIONS)
def test_batches_are_those_of_a_shard_written_so(folders, pairs, direction):
    shards = both(folders(), pairs, direction, segments=1)
    streams = [BatchStream({"a": one}, Mixture({"a": 1.0}), batch_tokens=30, seed=2) for one in shards]
    batches = [
        [*map(next, [stream] * 3), *eval_batches(one, batch_tokens=20)]
        for stream, one in zip(streams, shards, strict=True)
    ]
    for batch, expected in zip(*batches, strict=True):
        for name in ("src", "tgt", "tasks", "loss_weights", "ids"):
            np.testing.assert_array_equal(getattr(batch, name), getattr(expected, name))


@given(PAIRS, DIRECTIONS)
def test_counts_are_those_of_the_lengths(pairs, direction):
    src, tgt = (ragged([pair[side] for pair in pairs]) for side in (0, 1))
    lengths = direction.lengths(src.lengths, tgt.lengths)
    expected = pairs_as_read(pairs, direction)
    assert SegmentInfo.of(*lengths) == SegmentInfo(
        pairs=len(pairs),
        src_tokens=sum(len(one) for one, _ in expected),
        tgt_tokens=sum(len(other) for _, other in expected),
        longest=max(len(one) + len(other) for one, other in expected),
        longest_side=max(len(side) for pair in expected for side in pair),
    )


@pytest.mark.parametrize("target_tag", ["prepended", "appended", "none"])
def test_rows_out_of_the_middle_get_their_tags_and_none_get_none(target_tag):
    rows = ragged([[9, 9, END], [7, END], [8, 6, END]])
    middle = Ragged(rows.values, rows.offsets[1:3])
    assert [row.tolist() for row in insert_tag(middle, TAG, target_tag)] == [tagged([7, END], target_tag)]
    assert len(insert_tag(rows.take(np.arange(0)), TAG, target_tag)) == 0


@pytest.mark.parametrize("target_tag", ["prepended", "appended"])
def test_a_tag_beyond_two_bytes_is_added_to_rows_of_two_bytes(tmp_path, target_tag):
    write(tmp_path / "stored", [([9, 8, END], [7, END])], segments=1)
    shard = Shard.open(tmp_path / "stored", direction=Direction(target_tag=target_tag, tag=70_000))
    (source,), _ = shard.gather(np.arange(1))
    assert source.tolist() == [70_000 if token == TAG else token for token in tagged([9, 8, END], target_tag)]
