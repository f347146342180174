import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.shards import Ragged, Shard, write_shard

row_lists = st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=12), max_size=20)


def ragged(rows):
    return Ragged.from_rows([np.array(row, dtype=np.int64) for row in rows])


def contents(rows):
    return [row.tolist() for row in rows]


@given(row_lists)
def test_rows_come_back_as_they_were(rows):
    made = ragged(rows)
    assert len(made) == len(rows)
    assert contents(made) == rows
    assert made.lengths.tolist() == [len(row) for row in rows]


@given(row_lists.filter(bool), st.data())
def test_padded_agrees_with_a_loop(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    pad = data.draw(st.integers(-5, 5))
    width = max((len(rows[row]) for row in chosen), default=0)
    expected = [rows[row] + [pad] * (width - len(rows[row])) for row in chosen]
    padded = ragged(rows).padded(np.array(chosen, dtype=np.int64), pad=pad)
    assert padded.dtype == np.int64
    assert padded.shape == (len(chosen), width)
    assert padded.tolist() == expected


@given(row_lists.filter(bool), st.data())
def test_take_and_concatenate_agree_with_lists(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    taken = ragged(rows).take(np.array(chosen, dtype=np.int64))
    assert contents(taken) == [rows[row] for row in chosen]
    assert contents(Ragged.concatenate([taken, ragged(rows)])) == [rows[row] for row in chosen] + rows


def test_a_row_is_a_view():
    rows = ragged([[1, 2], [3]])
    assert np.shares_memory(rows[0], rows.values)
    assert rows[-1].tolist() == [3]


@pytest.mark.parametrize("row", [2, -3])
def test_a_row_out_of_range_is_refused(row):
    with pytest.raises(IndexError, match=f"`row` must be one of 2 rows, but is {row}"):
        ragged([[1, 2], [3]])[row]


@pytest.mark.parametrize("offsets", [[0, 2, 1], [0, 4], [-1, 3], []])
def test_offsets_that_cut_no_rows_are_refused(offsets):
    with pytest.raises(ValueError, match=r"`offsets` must rise from 0 to at most .* \(3\)"):
        Ragged(np.arange(3), np.array(offsets, dtype=np.int64))


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(*[st.lists(st.integers(0, 2**31 - 1), max_size=9)] * 2), max_size=20))
def test_a_shard_comes_back_as_it_was(pairs, tmp_path_factory):
    path = tmp_path_factory.mktemp("shards") / "train.en-de.arrow"
    write_shard(path, ragged([src for src, _ in pairs]), ragged([tgt for _, tgt in pairs]))
    shard = Shard.open(path)
    assert len(shard) == len(pairs)
    assert list(zip(contents(shard.src), contents(shard.tgt), strict=True)) == pairs
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(("top", "dtype"), [(2**16 - 1, np.uint16), (2**16, np.int32)])
def test_ids_take_two_bytes_where_they_fit(top, dtype, tmp_path):
    write_shard(tmp_path / "a.arrow", ragged([[3]]), ragged([[top]]))
    shard = Shard.open(tmp_path / "a.arrow")
    assert (shard.src.values.dtype, shard.tgt.values.dtype) == (np.uint16, dtype)
    assert pa.ipc.open_file(tmp_path / "a.arrow").schema.field("src").type == pa.large_list(pa.uint16())


def test_opening_copies_nothing(tmp_path):
    write_shard(tmp_path / "a.arrow", ragged([[1, 2]] * 100_000), ragged([[3]] * 100_000))
    before = pa.total_allocated_bytes()
    shard = Shard.open(tmp_path / "a.arrow")
    assert pa.total_allocated_bytes() == before
    assert not shard.src.values.flags.owndata
    assert not shard.src.values.flags.writeable


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[:100],
        lambda whole: whole[:-1],
        lambda whole: whole[len(whole) // 2 :],
        lambda whole: b"not an Arrow file\n" * 100,
        lambda whole: whole[:-100] + b"\xff" * 60 + whole[-40:],
        lambda whole: whole.replace(np.arange(0, 90, 3).tobytes(), np.arange(90, 0, -3).tobytes()),
    ],
    ids=["empty", "head", "last byte lost", "tail", "text", "broken footer", "broken offsets"],
)
def test_a_damaged_file_is_named(damage, tmp_path):
    path = tmp_path / "train.en-de.arrow"
    write_shard(path, ragged([[1, 2, 3]] * 500), ragged([[4]] * 500))
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    with pytest.raises(
        DataError, match=r"train\.en-de\.arrow: not a readable token shard \(.+\); prepare it again"
    ):
        Shard.open(path)


def write_table(path, table):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"src": pa.array([[1]], pa.list_(pa.uint16()))}, "its columns are list<.*>, not large_list<uint16>"),
        ({"src": pa.array(["a"])}, "its columns are string, not"),
        ({"source": pa.array(["a"])}, "src"),
    ],
)
def test_another_schema_is_refused(columns, reason, tmp_path):
    write_table(
        tmp_path / "a.arrow", pa.table(columns | {"tgt": pa.array([[1]], pa.large_list(pa.uint16()))})
    )
    with pytest.raises(DataError, match=rf"a\.arrow: not a readable token shard \(.*{reason}"):
        Shard.open(tmp_path / "a.arrow")


def test_several_record_batches_are_refused(tmp_path):
    ids = pa.array([[1]], pa.large_list(pa.uint16()))
    write_table(tmp_path / "a.arrow", pa.concat_tables([pa.table({"src": ids, "tgt": ids})] * 2))
    with pytest.raises(DataError, match="it holds 2 record batches, not 1"):
        Shard.open(tmp_path / "a.arrow")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        DataError, match=r"nothing\.arrow: no such token shard; `mnmt-data prepare` writes them\."
    ):
        Shard.open(tmp_path / "nothing.arrow")


@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        ([[1]], [[1], [2]], r"`tgt` must have as many rows as `src` \(1\), but has 2\."),
        ([[1]], [[-1]], r"`values` must be token ids from 0 to 2\*\*31 - 1, but reach from -1 to 0\."),
        (
            [[2**31]],
            [[1]],
            r"`values` must be token ids from 0 to 2\*\*31 - 1, but reach from 0 to 2147483648\.",
        ),
    ],
)
def test_what_cannot_be_written_leaves_the_old_shard(src, tgt, message, tmp_path):
    write_shard(tmp_path / "a.arrow", ragged([[5]]), ragged([[6]]))
    with pytest.raises(ValueError, match=message):
        write_shard(tmp_path / "a.arrow", ragged(src), ragged(tgt))
    assert contents(Shard.open(tmp_path / "a.arrow").tgt) == [[6]]


def test_a_write_that_fails_midway_leaves_no_trace(tmp_path, monkeypatch):
    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_shard(tmp_path / "a.arrow", ragged([[5]]), ragged([[6]]))
    assert list(tmp_path.iterdir()) == []
