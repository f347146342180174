import gc
import resource
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.store import mapped_segment, shards
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segment_file import SegmentFile
from mnmt_data.store.segments import write_segment
from mnmt_data.store.shards import Shard, segment_path, write_loss_weights

pair_lists = st.lists(st.tuples(*[st.lists(st.integers(0, 99_999), max_size=6)] * 2), max_size=8)


def ragged(rows):
    return Ragged.from_rows([np.array(row, dtype=np.int64) for row in rows])


def contents(rows):
    return [row.tolist() for row in rows]


def pairs_of(src, tgt):
    return list(zip(contents(src), contents(tgt), strict=True))


def write_shard(folder, *segments, block_rows=1):
    """A shard of given pairs, segment by segment."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, pairs in enumerate(segments):
        src, tgt = ragged([src for src, _ in pairs]), ragged([tgt for _, tgt in pairs])
        write_segment(segment_path(folder, number), src, tgt, block_rows=block_rows)
    return Shard.open(folder)


def numbered(count, *, first=0):
    return [([row] * (1 + row % 3), [row, 1]) for row in range(first, first + count)]


@given(segments=st.lists(pair_lists, min_size=1, max_size=5), data=st.data())
def test_several_segments_read_as_one(segments, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    rows = [pair for segment in segments for pair in segment]
    many, one = write_shard(folder / "many", *segments), write_shard(folder / "one", rows)
    assert len(many) == len(one) == len(rows)
    assert many.info == one.info
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "ROWS_MAPPED", data.draw(st.integers(0, 20)))
        for _ in range(3):
            chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=20) if rows else st.just([]))
            numbers = np.array(chosen, dtype=np.int64)
            for shard in (many, one):
                assert pairs_of(*shard.gather(numbers)) == [rows[row] for row in chosen]
                src_lengths, tgt_lengths = shard.lengths(numbers)
                assert src_lengths.tolist() == [len(rows[row][0]) for row in chosen]
                assert tgt_lengths.tolist() == [len(rows[row][1]) for row in chosen]


@given(segments=st.lists(pair_lists, min_size=1, max_size=4), size=st.integers(1, 10))
def test_blocks_hold_all_pairs_in_order(segments, size, tmp_path_factory):
    shard = write_shard(tmp_path_factory.mktemp("shards"), *segments)
    blocks = [pairs_of(*block) for block in shard.blocks(size)]
    assert [pair for block in blocks for pair in block] == [pair for segment in segments for pair in segment]
    assert all(len(block) == size for block in blocks[:-1])
    assert all(blocks)


@given(sizes=st.lists(st.integers(0, 400), min_size=1, max_size=4).filter(any), blocks=st.integers(1, 12))
def test_a_sample_is_whole_blocks_in_order_and_evenly_spaced(sizes, blocks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    segments = [numbered(size, first=sum(sizes[:i])) for i, size in enumerate(sizes)]
    shard = write_shard(folder, *segments)
    every = [segment[i : i + 64] for segment in segments for i in range(0, len(segment), 64)]
    count = min(blocks, len(every))
    places = [(2 * i + 1) * len(every) // (2 * count) for i in range(count)]
    expected = [pair for place in places for pair in every[place]]
    assert pairs_of(*shard.sample(blocks)) == expected
    assert [lengths.tolist() for lengths in shard.sample_lengths(blocks)] == [
        [len(pair[side]) for pair in expected] for side in (0, 1)
    ]
    assert len({*places}) == count


def test_a_sample_reads_its_blocks_alone(tmp_path):
    shard = write_shard(tmp_path, numbered(64 * 100))
    (file,) = shard._files
    shard.sample_lengths(5)
    assert file.is_verified.sum(axis=1).tolist() == [5, 0]
    shard.sample(5)
    assert file.is_verified.sum(axis=1).tolist() == [5, 5]


def record_mapped(monkeypatch):
    """The names of the files that are mapped from here on."""
    mapped, map_file = [], SegmentFile.mapping

    def map_and_tell(file, *, sparse):
        mapped.append(file.path.name)
        return map_file(file, sparse=sparse)

    monkeypatch.setattr(SegmentFile, "mapping", map_and_tell)
    return mapped


def test_segments_are_mapped_when_asked_for(tmp_path, monkeypatch):
    opened = record_mapped(monkeypatch)
    shard = write_shard(tmp_path, numbered(4), numbered(4, first=4))
    assert opened == []
    for _ in range(5):
        assert pairs_of(*shard.gather(np.array([5, 4]))) == numbered(2, first=4)[::-1]
    assert opened == ["00001.arrow"]


@given(
    rows=st.lists(st.integers(0, 11), max_size=30),
    rows_mapped=st.integers(1, 9),
    small=st.sampled_from([0, 2**28]),
    dense=st.sampled_from([0, 1, 2, 99]),
    block_rows=st.sampled_from([1, 4]),
)
def test_the_way_that_rows_are_read_changes_nothing(
    rows, rows_mapped, small, dense, block_rows, tmp_path_factory
):
    pairs = numbered(12)
    folder = tmp_path_factory.mktemp("shards")
    with patch.multiple(shards, ROWS_MAPPED=rows_mapped, SMALL=small, DENSE_ROWS=dense, STRETCH_ROWS=3):
        shard = write_shard(folder, pairs[:5], [], pairs[5:6], pairs[6:], block_rows=block_rows)
        for _ in range(2):
            chosen = np.array(rows, dtype=np.int64)
            assert pairs_of(*shard.gather(chosen)) == [pairs[row] for row in rows]
            src_lengths, _ = shard.lengths(chosen)
            assert src_lengths.tolist() == [len(pairs[row][0]) for row in rows]


@pytest.mark.parametrize(("small", "times"), [(0, 5), (2**28, 2)])
def test_segments_of_a_large_shard_are_unmapped_after_some_rows(small, times, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "ROWS_MAPPED", 3)
    monkeypatch.setattr(shards, "SMALL", small)
    shard = write_shard(tmp_path, numbered(8), numbered(4, first=8))
    mapped = record_mapped(monkeypatch)
    assert pairs_of(*shard.gather(np.arange(12))) == numbered(12)
    assert len(mapped) == times


@pytest.fixture
def few_descriptors():
    """Let this process open no more than eight files beside those that are open already."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(link.name) for link in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("small", [0, 2**28])
def test_descriptors_do_not_grow_with_the_segments(small, tmp_path, monkeypatch, few_descriptors):
    monkeypatch.setattr(shards, "SMALL", small)
    monkeypatch.setattr(mapped_segment, "MOST_MAPPED", 4)
    monkeypatch.setattr("os.fsync", lambda fd: None)
    segments = [numbered(2, first=2 * number) for number in range(50)]
    tasks = [write_shard(tmp_path / str(task), *segments) for task in range(3)]
    for _ in range(2):
        for shard in tasks:
            assert pairs_of(*shard.gather(np.arange(100))) == numbered(100)


def test_many_rows_of_a_stretch_are_read_without_mapping(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "SMALL", 0)
    shard = write_shard(tmp_path, numbered(300), numbered(300, first=300))
    mapped = record_mapped(monkeypatch)
    rows = np.arange(550, 100, -2)
    assert pairs_of(*shard.gather(rows)) == [numbered(1, first=row)[0] for row in rows]
    assert shard.lengths(rows)[0].tolist() == (1 + rows % 3).tolist()
    assert mapped == []
    assert pairs_of(*shard.gather(rows[:3])) == [numbered(1, first=row)[0] for row in rows[:3]]
    assert mapped == ["00001.arrow"]


def test_a_shard_that_is_no_longer_held_keeps_no_segment_mapped(tmp_path):
    before = set(mapped_segment._mapped)
    shard = write_shard(tmp_path, numbered(4), numbered(4, first=4))
    assert pairs_of(*shard.gather(np.arange(8))) == numbered(8)
    assert len(set(mapped_segment._mapped) - before) == 2
    del shard
    gc.collect()
    assert not set(mapped_segment._mapped) - before


def test_opening_reads_no_tokens(tmp_path, monkeypatch):
    write_segment(segment_path(tmp_path, 0), ragged([[1, 2]] * 100_000), ragged([[3]] * 100_000))
    before = pa.total_allocated_bytes()
    shard = Shard.open(tmp_path)
    assert pa.total_allocated_bytes() == before
    segment_path(tmp_path, 0).unlink()
    assert len(shard) == 100_000
    assert (shard.info.src_tokens, shard.info.tgt_tokens, shard.info.longest) == (200_000, 100_000, 3)


def test_a_segment_lost_after_opening_is_named(tmp_path):
    shard = write_shard(tmp_path, numbered(2), numbered(2, first=2))
    segment_path(tmp_path, 1).unlink()
    assert pairs_of(*shard.gather(np.array([1]))) == numbered(1, first=1)
    with pytest.raises(DataError, match=r"00001\.arrow: no such segment of a token shard; prepare again"):
        shard.gather(np.array([0, 3]))


def test_segments_are_in_order_of_their_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "segment_path", lambda shard, number: shard / f"{number}.arrow")
    for number in range(12):
        write_segment(tmp_path / f"{number}.arrow", ragged([[number]]), ragged([[1]]))
    src, _ = Shard.open(tmp_path).gather(np.arange(12))
    assert contents(src) == [[number] for number in range(12)]


def test_a_missing_segment_is_named(tmp_path):
    write_shard(tmp_path, numbered(1), numbered(1), numbered(1))
    segment_path(tmp_path, 1).unlink()
    with pytest.raises(DataError, match=r"00001\.arrow: this segment of the shard is missing; prepare"):
        Shard.open(tmp_path)


@pytest.mark.parametrize(
    "make", [lambda path: None, Path.mkdir, Path.touch], ids=["absent", "empty", "a file"]
)
def test_a_folder_without_segments_is_named(make, tmp_path):
    make(tmp_path / "train.en-de")
    with pytest.raises(
        DataError, match=r"train\.en-de: no such token shard; `mnmt-data prepare` writes them\.$"
    ):
        Shard.open(tmp_path / "train.en-de")


def test_pairs_weigh_one_unless_their_weights_are_there(tmp_path):
    shard = write_shard(tmp_path / "test.en-de", numbered(3))
    assert shard.loss_weights().tolist() == [1, 1, 1]
    write_loss_weights(shard.path, np.array([0.5, 0.0, 2.5]))
    assert shard.loss_weights().tolist() == [0.5, 0, 2.5]
    assert shard.loss_weights().dtype == np.float32


@pytest.mark.parametrize("content", [b"", b"no weights", None])
def test_broken_weights_are_named(content, tmp_path):
    shard = write_shard(tmp_path / "test.en-de", numbered(3))
    write_loss_weights(shard.path, np.ones(4))
    path = tmp_path / "test.en-de/weights.npy"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError) as error:
        shard.loss_weights()
    assert str(error.value) == f"{path}: must hold 3 float32 weights; remove it and prepare again."


@pytest.mark.parametrize("sizes", [(0, 2**32), (2**28, 2**32), (0, 0)], ids=["large", "small", "very large"])
@pytest.mark.parametrize("step", [1, 100], ids=["dense", "sparse"])
@pytest.mark.parametrize("part", ["src", "blocks"])
def test_a_damaged_row_is_one_line_however_it_is_read(sizes, step, part, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "SMALL", sizes[0])
    monkeypatch.setattr(shards, "READ_WHOLE", sizes[1])
    shard = write_shard(tmp_path, numbered(300), numbered(300, first=300))
    path, places = segment_path(tmp_path, 1), shard._files[1]
    damaged = bytearray(path.read_bytes())
    damaged[(places.src.values if part == "src" else places.blocks.src).start + 20] ^= 8
    path.write_bytes(damaged)
    shard = Shard.open(tmp_path)
    shard.gather(np.arange(0, 300, step))
    with pytest.raises(DataError, match=r"00001\.arrow: has changed since it was written; remove it"):
        (shard.gather if part == "src" else shard.lengths)(np.arange(0, 600, step))
