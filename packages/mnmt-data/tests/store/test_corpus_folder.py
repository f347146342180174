import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.store.corpus_folder import Bitext, read_bitext, read_lines, write_bitext

PLAIN = st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"]), max_size=12)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("a\nb\n", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ("a\n\nb\n", ["a", "", "b"]),
        ("a\n\n", ["a", ""]),
        ("", []),
        ("\n", [""]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("\ufeffa\nb\n", ["a", "b"]),
        ("a\x85b\nc\n", ["a\x85b", "c"]),
        ("a\u2028b\x0bc\x0cd\x1ce\n", ["a\u2028b\x0bc\x0cd\x1ce"]),
        ("a\rb\nc\n", ["a\rb", "c"]),
    ],
)
def test_only_newlines_end_lines(tmp_path, content, lines):
    assert read_lines(write(tmp_path, "text", content)) == lines


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


@pytest.mark.parametrize(
    ("content", "line"), [(b"\xff\n", 1), (b"a\n\xe9b\n", 2), (b"\xef\xbb\xbfa\nb\nc\xc3", 3)]
)
def test_invalid_utf_8_is_placed(tmp_path, content, line):
    path = write(tmp_path, "text", content)
    with pytest.raises(DataError) as raised:
        read_lines(path)
    assert str(raised.value).startswith(f"{path}:{line}: not valid UTF-8; ")


@pytest.mark.parametrize("content", ["\ufeffa\r\nb\r\nc\x85\r\n", "a\nb\nc", "a\u2029\nb\x0c\nc\n"])
def test_stray_characters_do_not_change_line_counts(tmp_path, content):
    write(tmp_path, "train.en-de.en", content)
    write(tmp_path, "train.en-de.de", "x\ny\nz\n")
    assert len(read_bitext(tmp_path, "train", "en-de")) == 3
