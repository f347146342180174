import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.store.corpus_folder import Bitext, read_bitext, write_bitext

PLAIN = st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"]), max_size=12)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@given(st.lists(st.tuples(PLAIN, PLAIN), min_size=1, max_size=6))
def test_what_is_written_is_read_again(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("corpus")
    bitext = Bitext(src=[src for src, _ in pairs], tgt=[tgt for _, tgt in pairs])
    write_bitext(folder, "train", "en-de", bitext)
    assert read_bitext(folder, "train", "en-de") == bitext


def test_text_named_for_the_opposite_direction_serves(tmp_path):
    write_bitext(tmp_path, "train", "en-de", Bitext(src=["one"], tgt=["eins"]))
    assert read_bitext(tmp_path, "train", "de-en") == Bitext(src=["eins"], tgt=["one"])
    write_bitext(tmp_path, "train", "de-en", Bitext(src=["zwei"], tgt=["two"]))
    assert read_bitext(tmp_path, "train", "de-en") == Bitext(src=["zwei"], tgt=["two"])


def test_missing_side_is_named(tmp_path):
    write(tmp_path, "train.en-de.en", "a\n")
    with pytest.raises(DataError, match=r"train\.en-de\.de: no such file"):
        read_bitext(tmp_path, "train", "en-de")


def test_unequal_line_counts_are_told(tmp_path):
    src = write(tmp_path, "train.en-de.en", "a\nb\nc\n")
    tgt = write(tmp_path, "train.en-de.de", "a\nb\n")
    with pytest.raises(DataError) as raised:
        read_bitext(tmp_path, "train", "en-de")
    assert str(raised.value).startswith(f"{src}: has 3 lines, but {tgt} has 2; ")


def test_empty_corpus_is_told(tmp_path):
    src = write(tmp_path, "train.en-de.en", "")
    write(tmp_path, "train.en-de.de", "")
    with pytest.raises(DataError) as raised:
        read_bitext(tmp_path, "train", "en-de")
    assert str(raised.value).startswith(f"{src}: has no lines; ")
