import gc
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.store import mapped_segment
from mnmt_data.store.mapped_segment import map_segment, unmap
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segment_file import SegmentFile, Stretch
from mnmt_data.store.segments import SegmentInfo, check_file, checksum, total, write_segment

ids = st.lists(st.integers(0, 2**31 - 1), max_size=9)
pair_lists = st.lists(st.tuples(ids, ids), max_size=20)
IDS = pa.array([[1]], pa.large_list(pa.uint16()))


def open_segment(path):
    return map_segment(SegmentFile.open(path))


def ragged(rows):
    return Ragged.from_rows([np.array(row, dtype=np.int64) for row in rows])


def contents(rows):
    return [row.tolist() for row in rows]


def sides(pairs):
    return ragged([src for src, _ in pairs]), ragged([tgt for _, tgt in pairs])


def info_of(pairs):
    """By definition, one pair at a time."""
    return SegmentInfo(
        pairs=len(pairs),
        src_tokens=sum(len(src) for src, _ in pairs),
        tgt_tokens=sum(len(tgt) for _, tgt in pairs),
        longest=max((len(src) + len(tgt) for src, tgt in pairs), default=0),
        longest_side=max((len(side) for pair in pairs for side in pair), default=0),
    )


@given(pairs=pair_lists)
def test_a_segment_comes_back_as_it_was(pairs, tmp_path_factory):
    path = tmp_path_factory.mktemp("shard") / "00000.arrow"
    written = write_segment(path, *sides(pairs))
    segment = open_segment(path)
    assert len(segment) == len(pairs)
    assert list(zip(contents(segment.src), contents(segment.tgt), strict=True)) == pairs
    assert written == SegmentFile.open(path).info == info_of(pairs)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@given(pairs=pair_lists.filter(bool), data=st.data())
def test_rows_in_the_middle_of_an_array_are_written_alone(pairs, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("shard") / "00000.arrow"
    start = data.draw(st.integers(0, len(pairs)))
    end = data.draw(st.integers(start, len(pairs)))
    src, tgt = (Ragged(side.values, side.offsets[start : end + 1]) for side in sides(pairs))
    assert write_segment(path, src, tgt) == info_of(pairs[start:end])
    segment = open_segment(path)
    assert list(zip(contents(segment.src), contents(segment.tgt), strict=True)) == pairs[start:end]


@given(st.lists(st.builds(SegmentInfo, **dict.fromkeys(asdict(info_of([])), st.integers(0, 99)))))
def test_totals_are_sums_and_the_longest_of_all(infos):
    everything = total(iter(infos))
    for name in ("pairs", "src_tokens", "tgt_tokens"):
        assert getattr(everything, name) == sum(getattr(info, name) for info in infos)
    assert everything.longest == max([0, *(info.longest for info in infos)])


@pytest.mark.parametrize(("top", "dtype"), [(2**16 - 1, np.uint16), (2**16, np.int32), (2**31 - 1, np.int32)])
def test_ids_take_two_bytes_where_they_fit(top, dtype, tmp_path):
    write_segment(tmp_path / "a.arrow", ragged([[3]]), ragged([[top]]))
    segment = open_segment(tmp_path / "a.arrow")
    assert (segment.src.values.dtype, segment.tgt.values.dtype) == (np.uint16, dtype)
    assert segment.tgt[0].tolist() == [top]
    assert pa.ipc.open_file(tmp_path / "a.arrow").schema.field("src").type == pa.large_list(pa.uint16())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_an_unmapped_segment_keeps_no_file_open(tmp_path):
    write_segment(tmp_path / "a.arrow", ragged([[1, 2]]), ragged([[3]]))
    file = SegmentFile.open(tmp_path / "a.arrow")
    assert contents(map_segment(file).src) == [[1, 2]]
    unmap([file])
    gc.collect()
    open_files = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert str(tmp_path / "a.arrow") not in open_files


@given(st.lists(st.integers(0, 5), max_size=30))
def test_the_segments_used_last_stay_mapped(uses):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped_segment, "MOST_MAPPED", 3)
        patch.setattr(mapped_segment, "_mapped", {})
        patch.setattr("os.fsync", lambda fd: None)
        for number in range(6):
            write_segment(Path(folder) / str(number), ragged([[number]]), ragged([[1]]))
        files = [SegmentFile.open(Path(folder) / str(number)) for number in range(6)]
        for number in uses:
            assert contents(map_segment(files[number]).src) == [[number]]
        last = list(dict.fromkeys(uses[::-1]))[:3]
        assert list(mapped_segment._mapped) == [files[number] for number in last[::-1]]


def test_a_file_written_again_is_not_read_as_the_old_one(tmp_path):
    write_segment(tmp_path / "a.arrow", ragged([[1, 2]]), ragged([[3]]))
    file = SegmentFile.open(tmp_path / "a.arrow")
    write_segment(tmp_path / "a.arrow", ragged([[1, 2], [4]]), ragged([[3], [5]]))
    with pytest.raises(DataError, match=r"a\.arrow: was written again while it was read; start again"):
        map_segment(file)


DAMAGES = {
    "empty": lambda whole: b"",
    "head": lambda whole: whole[:100],
    "last byte lost": lambda whole: whole[:-1],
    "tail": lambda whole: whole[len(whole) // 2 :],
    "text": lambda whole: b"not an Arrow file\n" * 100,
    "broken footer": lambda whole: whole[:-100] + b"\xff" * 60 + whole[-40:],
    "ids of 128 bits": lambda whole: b"\x80\0\0\0".join(whole.rsplit(b"\x10\0\0\0", 1)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_named(damage, tmp_path):
    path = tmp_path / "00000.arrow"
    write_segment(path, ragged([[1, 2, 3]] * 500), ragged([[4]] * 500))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        DataError, match=r"00000\.arrow: not a readable token shard \(.+\); remove it and prepare again\.$"
    ):
        SegmentFile.open(path)


@given(where=st.floats(0, 1, exclude_max=True), what=st.binary(min_size=1, max_size=8))
def test_whatever_byte_changes_the_checksum_finds_it(where, what, tmp_path_factory):
    path = tmp_path_factory.mktemp("shard") / "00000.arrow"
    write_segment(path, ragged([[1, 2, 3]] * 20), ragged([[4]] * 20))
    whole, expected = path.read_bytes(), checksum(path)
    place = int(where * len(whole))
    path.write_bytes(changed := whole[:place] + what + whole[place + len(what) :])
    if changed == whole:
        check_file(path, sha256=expected)
    else:
        with pytest.raises(DataError, match=r"00000\.arrow: has changed since it was written; remove it"):
            check_file(path, sha256=expected)


def read_both_ways(path, rows):
    """Lengths and tokens of all rows, from a stretch and from a mapped segment; the counts too."""
    file, again = SegmentFile.open(path), SegmentFile.open(path)
    parts = (Stretch(file=file, start=0, stop=rows), map_segment(again))
    every = np.arange(rows)
    lengths = [[side.tolist() for side in part.lengths_of(every)] for part in parts]
    return (
        file.info,
        file.block_rows,
        lengths,
        [[contents(side) for side in part.take(every)] for part in parts],
    )


@given(where=st.floats(0, 1, exclude_max=True), what=st.binary(min_size=1, max_size=16))
def test_damage_is_one_line_or_changes_nothing(where, what, tmp_path_factory):
    path = tmp_path_factory.mktemp("shard") / "00000.arrow"
    write_segment(path, ragged([[1, 2, 3], [7]] * 50), ragged([[4]] * 100), block_rows=8)
    expected, whole = read_both_ways(path, 100), path.read_bytes()
    place = int(where * len(whole))
    path.write_bytes(whole[:place] + what + whole[place + len(what) :])
    found = None
    try:
        read = read_both_ways(path, 100)
    except DataError as error:
        found = str(error)
    if found is None:
        assert read == expected
    else:
        assert found.startswith(f"{path}: ")
        assert "\n" not in found


@pytest.mark.parametrize("part", ["tokens", "lengths", "offsets"])
def test_damage_matters_to_the_rows_of_its_block_alone(part, tmp_path):
    path = tmp_path / "00000.arrow"
    write_segment(path, ragged([[5, 6]] * 300), ragged([[7]] * 300))
    file, row = SegmentFile.open(path), 130
    place, element = {
        "tokens": (file.src.values, 2 * row),
        "lengths": (file.blocks.tgt, row),
        "offsets": (file.tgt.offsets, row),
    }[part]
    damaged = bytearray(path.read_bytes())
    damaged[place.start + place.dtype.itemsize * element] ^= 1
    path.write_bytes(damaged)
    file = SegmentFile.open(path)

    def read(reader, rows):
        return (reader.lengths_of if part == "lengths" else reader.take)(np.array(rows))

    read(map_segment(file), [0, 127, 192, 299])
    read(Stretch(file=file, start=0, stop=128), [0, 127])
    for reader in (map_segment(file), Stretch(file=file, start=180, stop=200)):
        with pytest.raises(DataError, match=r"00000\.arrow: has changed since it was written; remove it"):
            read(reader, [191])


@pytest.mark.parametrize("name", ["00001.arrow", "../other/00000.arrow"])
def test_a_segment_in_the_place_of_another_is_refused(name, tmp_path):
    path = tmp_path / "shard/00000.arrow"
    for folder in ("shard", "other"):
        (tmp_path / folder).mkdir()
    write_segment(path, ragged([[1]]), ragged([[2]]))
    path.rename(path.parent / name)
    with pytest.raises(DataError, match=r"token shard \(it is the segment shard/00000\.arrow\); remove"):
        SegmentFile.open(path.parent / name)


def write_table(path, table):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def test_segments_of_version_0_4_are_refused(tmp_path):
    """A segment without lengths and checksums."""
    path = tmp_path / "00000.arrow"
    write_segment(path, ragged([[1, 2]]), ragged([[3]]))
    table = pa.ipc.open_file(path.read_bytes()).read_all()
    metadata = {"mnmt": table.schema.metadata[b"mnmt"]}
    write_table(path, table.select(["src", "tgt"]).replace_schema_metadata(metadata))
    with pytest.raises(DataError, match=r"\(it has no checksums, as those of version 0\.4\); remove"):
        SegmentFile.open(path)


TABLE = pa.table({"src": IDS, "tgt": IDS})


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (
            pa.table({"src": pa.array([[1]], pa.list_(pa.uint16())), "tgt": IDS}),
            "its columns are list<.*>, not large_list<uint16>",
        ),
        (pa.table({"src": pa.array(["a"]), "tgt": IDS}), "its columns are string, not"),
        (pa.table({"source": pa.array(["a"]), "tgt": IDS}), "src"),
        (pa.concat_tables([TABLE] * 2), "it holds 2 record batches, not 1"),
        *(
            (TABLE.replace_schema_metadata(said and {"mnmt": said}), "")
            for said in (None, "[", "7", '{"rows": 1}')
        ),
    ],
)
def test_another_table_is_refused(table, reason, tmp_path):
    write_table(tmp_path / "a.arrow", table)
    message = rf"a\.arrow: not a readable token shard \(.*{reason}.*\); remove it and prepare again\.$"
    with pytest.raises(DataError, match=message):
        SegmentFile.open(tmp_path / "a.arrow")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.arrow: no such segment of a token shard; prepare again"):
        SegmentFile.open(tmp_path / "nothing.arrow")


def test_offsets_that_fall_are_not_written(tmp_path):
    falling = Ragged(np.arange(5), np.array([0, 4, 3, 5]))
    with pytest.raises(ValueError, match="`offsets` must rise, but fall after row 1"):
        write_segment(tmp_path / "a.arrow", falling, falling)
    assert list(tmp_path.iterdir()) == []


@given(pairs=pair_lists.filter(bool), data=st.data())
def test_a_stretch_is_what_mapping_gives(pairs, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("shard") / "00000.arrow"
    write_segment(path, *sides(pairs), block_rows=data.draw(st.sampled_from([1, 4])))
    file = SegmentFile.open(path)
    start = data.draw(st.integers(0, len(pairs) - 1))
    stop = data.draw(st.integers(start + 1, len(pairs)))
    rows = np.array(data.draw(st.lists(st.integers(start, stop - 1), max_size=9)), dtype=np.int64)
    for part in (Stretch(file=file, start=start, stop=stop), map_segment(file)):
        assert [contents(side) for side in part.take(rows)] == [
            [pairs[row][side] for row in rows] for side in (0, 1)
        ]
        assert [side.tolist() for side in part.lengths_of(rows)] == [
            [len(pairs[row][side]) for row in rows] for side in (0, 1)
        ]


@pytest.mark.parametrize(("longest", "dtype"), [(255, pa.uint8()), (256, pa.uint16()), (2**16, pa.uint32())])
def test_lengths_of_a_shuffled_shard_take_as_few_bytes_as_they_can(longest, dtype, tmp_path):
    rows = ragged([[1], [2] * longest])
    write_segment(tmp_path / "a.arrow", rows, rows, block_rows=8)
    assert pa.ipc.open_file(tmp_path / "a.arrow").schema.field("src_length").type == dtype
    file = SegmentFile.open(tmp_path / "a.arrow")
    assert file.block_rows == 8
    assert map_segment(file).lengths_of(np.array([1, 0]))[0].tolist() == [longest, 1]


def test_a_stretch_reads_its_blocks_and_no_others(tmp_path, monkeypatch):
    rows = ragged([[1, 2, 3]] * 1000)
    write_segment(tmp_path / "a.arrow", rows, rows, block_rows=8)
    stretch = Stretch(file=SegmentFile.open(tmp_path / "a.arrow"), start=100, stop=200)
    read, pread = [], os.pread
    monkeypatch.setattr(os, "pread", lambda *request: read.append(request[1]) or pread(*request))
    rows, checksums = 256 - 64, 3 * 2 * 8
    stretch.lengths_of(np.arange(100, 200))
    assert read == [rows, rows, checksums]
    stretch.take(np.arange(100, 200))
    assert read[3:] == [8 * (rows + 1), 2 * 3 * rows] * 2 + [checksums]
    stretch.lengths_of(np.arange(100, 200))
    assert read[8:] == [rows, rows]


@pytest.mark.parametrize("rows", ["0", "-3", "many"])
def test_a_wrong_number_of_rows_of_a_block_is_refused(rows, tmp_path):
    info = json.dumps(asdict(info_of([([1], [1])])))
    table = pa.table({"src": IDS, "tgt": IDS}).replace_schema_metadata({"mnmt": info, "block_rows": rows})
    write_table(tmp_path / "a.arrow", table)
    with pytest.raises(
        DataError, match=r"a\.arrow: not a readable token shard \(.+\); remove it and prepare again\.$"
    ):
        SegmentFile.open(tmp_path / "a.arrow")
