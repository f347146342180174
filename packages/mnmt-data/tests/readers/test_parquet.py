import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mnmt_data.errors import DataError
from mnmt_data.readers import open_reader

MAP = pa.map_(pa.string(), pa.string())


def write(folder, columns, name="x.parquet", **options):
    path = folder / name
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
    return path


def read(path, task="en-de"):
    (block,) = open_reader(str(path), task).blocks()
    return block.src, block.tgt


@pytest.mark.parametrize(
    "columns",
    [
        {"id": [1, 2], "en": ["a", "b"], "de": ["A", "B"]},
        {"de": ["A", "B"], "en": ["a", "b"]},
        {"eng_Latn": ["a", "b"], "deu_Latn": ["A", "B"]},
        {"translation": [{"de": "A", "en": "a"}, {"de": "B", "en": "b"}]},
        {"translation": pa.array([[("de", "A"), ("en", "a")], [("en", "b"), ("de", "B")]], MAP)},
        {"src": ["a", "b"], "tgt": ["A", "B"]},
        {"source": ["a", "b"], "target": ["A", "B"], "score": [1.0, 0.5]},
        {"src": ["x", "x"], "tgt": ["x", "x"], "en": ["a", "b"], "de": ["A", "B"]},
        {"src": pa.array(["a", "b"]).dictionary_encode(), "tgt": pa.array(["A", "B"], pa.large_string())},
    ],
)
def test_columns_are_found_by_name(tmp_path, columns):
    assert read(write(tmp_path, columns)) == (["a", "b"], ["A", "B"])


def test_nulls_and_newlines(tmp_path):
    columns = {"en": ["a", None, "two\nlines"], "de": [None, "B\r", "C"]}
    assert read(write(tmp_path, columns)) == (["a", "", "two lines"], ["", "B\r", "C"])
    struct = {"translation": [{"en": "a", "de": "A"}, None]}
    assert read(write(tmp_path, struct)) == (["a", ""], ["A", ""])
    pairs = pa.array([[("en", "a"), ("de", None)], None, [("de", "C")], [("fr", "d")]], MAP)
    assert read(write(tmp_path, {"translation": pairs})) == (["a", "", "", ""], ["", "", "C", ""])


def test_a_map_without_the_languages_names_its_keys(tmp_path):
    path = write(tmp_path, {"translation": pa.array([[("en", "a"), ("fr", "b")]], MAP)})
    with pytest.raises(DataError, match=r"translation\.en, translation\.fr"):
        read(path)


def test_blocks_do_not_end_where_row_groups_do(tmp_path, monkeypatch):
    monkeypatch.setattr("mnmt_data.readers.parquet.BLOCK_PAIRS", 4)
    numbers = [str(number) for number in range(11)]
    path = write(tmp_path, {"en": numbers, "de": numbers}, row_group_size=3)
    blocks = list(open_reader(str(path), "en-de").blocks())
    assert [(block.first, len(block)) for block in blocks] == [(0, 4), (4, 4), (8, 3)]
    assert [text for block in blocks for text in block.src] == numbers
    assert all(block.src == block.tgt for block in blocks)


@pytest.mark.parametrize(
    ("columns", "there"),
    [
        ({"id": [1], "en": ["a"], "fr": ["A"]}, "id, en, fr"),
        ({"translation": [{"en": "a", "fr": "A"}]}, "translation, translation.en, translation.fr"),
        ({"src": ["a"], "target": ["A"]}, "src, target"),
        ({"translation": ["text"]}, "translation"),
    ],
)
def test_a_missing_column_lists_those_that_are_there(tmp_path, columns, there):
    path = write(tmp_path, columns)
    with pytest.raises(DataError) as error:
        list(open_reader(str(path), "en-de").blocks())
    toml = 'columns."x.parquet" = { en = "...", de = "..." } under [data]'
    wanted = f"name two after the languages, or src and tgt, or write {toml}"
    assert str(error.value) == f"{path}: no columns for en-de among {there}; {wanted}."


def test_a_column_must_hold_strings(tmp_path):
    path = write(tmp_path, {"en": ["a"], "de": [1]})
    with pytest.raises(DataError) as error:
        list(open_reader(str(path), "en-de").blocks())
    assert str(error.value) == f"{path}: the column de holds int64; it must hold strings."


def test_invalid_text_names_the_row(tmp_path, monkeypatch):
    monkeypatch.setattr("mnmt_data.readers.parquet.BLOCK_PAIRS", 2)
    bytes_ = pa.array([b"a", b"b", b"c", b"\xff"], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 4, bytes_.buffers())
    path = write(tmp_path, {"en": broken, "de": ["A", "B", "C", "D"]})
    with pytest.raises(DataError) as error:
        list(open_reader(str(path), "en-de").blocks())
    assert str(error.value) == f"{path}: row 4: not valid UTF-8; write the file anew."


def test_a_column_that_is_there_twice_is_named(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"])] * 3, names=["en", "de", "de"])
    with pytest.raises(DataError, match=r"has several columns de; keep one"):
        list(open_reader(str(write(tmp_path, table)), "en-de").blocks())


@pytest.mark.parametrize("content", [b"", b"not a table at all", None])
def test_what_is_not_parquet_is_one_line(tmp_path, content):
    path = write(tmp_path, {"en": ["a"] * 100, "de": ["A"] * 100})
    path.write_bytes(path.read_bytes()[:-10] if content is None else content)
    with pytest.raises(DataError) as error:
        list(open_reader(str(path), "en-de").blocks())
    said = {b"": "is empty, which", None: "cannot be read as Parquet ("}.get(
        content, "is not Parquet, though"
    )
    assert str(error.value).startswith(f"{path}: {said}")
    assert "\n" not in str(error.value)


def test_an_overlong_sentence_is_empty(tmp_path):
    assert read(write(tmp_path, {"en": ["x" * 70_000], "de": ["A"]})) == ([""], ["A"])
