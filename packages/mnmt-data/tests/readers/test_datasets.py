"""Data sets as Hugging Face's library saves them, written here with pyarrow alone."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pytest

from mnmt_data.errors import DataError
from mnmt_data.readers import find_readers, open_reader
from mnmt_data.readers.columns import with_columns

PAIRS = [("a", "A"), ("b\nb", None), ("c", "C")]


def save(folder, *, names=("translation", "en", "de"), files=2):
    """A folder like that of `Dataset.save_to_disk`: Arrow streams, and state.json that lists them."""
    folder.mkdir(parents=True)
    column, src, tgt = names
    table = pa.table({column: pa.array([{src: one, tgt: other} for one, other in PAIRS])})
    parts = [f"data-{number:05}-of-{files:05}.arrow" for number in range(files)]
    for number, part in enumerate(parts):
        rows = table.slice(number * 2, 2)
        with pa.OSFile(str(folder / part), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(rows)
    state = {"_data_files": [{"filename": part} for part in parts], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    return folder


def pairs(reader):
    return [pair for block in reader.blocks() for pair in zip(block.src, block.tgt, strict=True)]


EXPECTED = [("a", "A"), ("b b", ""), ("c", "C")]


def test_a_saved_data_set_is_a_source(tmp_path):
    folder = save(tmp_path / "opus")
    reader = open_reader(str(folder), "en-de")
    assert [path.name for path in reader.paths] == ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    assert pairs(reader) == EXPECTED
    assert pairs(open_reader(str(folder), "de-en")) == [pair[::-1] for pair in EXPECTED]


def test_a_saved_data_set_stands_in_a_corpus_folder(tmp_path):
    save(tmp_path / "corpus/train.en-de")
    (reader,) = find_readers(tmp_path / "corpus", "train", "en-de")
    assert pairs(reader) == EXPECTED


def test_a_study_names_the_columns_of_a_data_set(tmp_path):
    table = pa.table({"text": ["a"], "text_de": ["A"]})
    folder = save(tmp_path / "opus", files=1)
    path = str(folder / "data-00000-of-00001.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    reader = open_reader(str(folder), "en-de")
    with pytest.raises(DataError, match=r'or write columns\."opus" = \{ en = "...", de = "..." \}'):
        pairs(reader)
    assert pairs(with_columns(reader, {"opus": {"en": "text", "de": 2}})) == [("a", "A")]


def test_one_of_several_splits_must_be_named(tmp_path):
    save(tmp_path / "opus/train")
    (tmp_path / "opus/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(DataError, match=r"opus: holds the splits train, test; name one of these"):
        open_reader(str(tmp_path / "opus"), "en-de")
    assert pairs(open_reader(str(tmp_path / "opus/train"), "en-de")) == EXPECTED


def test_mistakes_are_one_line(tmp_path):
    folder = save(tmp_path / "x", names=("translation", "en", "fr"))
    with pytest.raises(DataError, match=r"x: no columns for en-de among translation, translation\.en,"):
        pairs(open_reader(str(folder), "en-de"))
    (folder / "data-00001-of-00002.arrow").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"00001-of-00002\.arrow: cannot be read as a data set \("):
        pairs(open_reader(str(folder), "en-fr"))
    (folder / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(DataError, match=r"00001-of-00002\.arrow: no such file"):
        pairs(open_reader(str(folder), "en-fr"))


@pytest.mark.parametrize(
    "state", ["[", "{}", "[]", "5", '{"_data_files": []}', '{"_data_files": [{"name": 1}]}']
)
@pytest.mark.parametrize("name", ["state.json", "dataset_dict.json"])
def test_what_does_not_list_files_is_one_line(tmp_path, name, state):
    folder = save(tmp_path / "x")
    (folder / name).write_text(state)
    with pytest.raises(DataError, match=rf"{name}: does not describe a saved data set; save it again"):
        open_reader(str(folder), "en-fr")


def test_all_files_have_the_same_columns(tmp_path):
    folder = save(tmp_path / "x")
    save(tmp_path / "y", names=("text", "en", "de"))
    name = "data-00001-of-00002.arrow"
    (tmp_path / "y" / name).replace(folder / name)
    with pytest.raises(DataError, match=rf"{name}: has other columns than the first file"):
        pairs(open_reader(str(folder), "en-de"))


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A stand-in for the library `datasets`, which knows one data set."""
    folder = save(tmp_path / "cache")
    library, errors = ModuleType("datasets"), ModuleType("datasets.exceptions")
    errors.DatasetsError = type("DatasetsError", (Exception,), {})

    def load_dataset(name, config, *, split):
        if (name, config, split) != ("owner/set", "en-de", "train"):
            raise errors.DatasetsError(f"no {name}\nand more")
        return SimpleNamespace(
            cache_files=[{"filename": str(path)} for path in sorted(folder.glob("*.arrow"))]
        )

    library.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", library)
    monkeypatch.setitem(sys.modules, "datasets.exceptions", errors)


def test_a_data_set_is_read_by_its_name(hub):
    reader = open_reader("hf:owner/set/en-de:train", "en-de")
    assert len(reader.paths) == 2
    assert pairs(reader) == EXPECTED


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("hf:owner/set", "hf:owner/set: must be hf:OWNER/NAME/CONFIG:SPLIT, or hf:OWNER/NAME:SPLIT."),
        ("hf:owner/other:train", "hf:owner/other:train: cannot be had (no owner/other); see to its name"),
    ],
)
def test_a_name_that_gives_nothing_is_one_line(hub, source, message):
    with pytest.raises(DataError) as raised:
        open_reader(source, "en-de")
    assert str(raised.value).startswith(message)


def test_a_name_without_the_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"hf:a/b:train: needs the extra `huggingface`: pip install"):
        open_reader("hf:a/b:train", "en-de")
