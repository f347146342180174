"""TSV with and without headers, CSV and JSON lines; lines that cannot be read are refused or listed."""

import csv
import gzip
import io
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.readers import find_readers, open_reader

CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), max_size=12)
PAIRS = st.lists(st.tuples(CELL, CELL), max_size=12)
SMALL = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(path, task="en-de", **options):
    blocks = list(open_reader(str(path), task).blocks(**options))
    return [pair for block in blocks for pair in zip(block.src, block.tgt, strict=True)]


def bad_lines(path, task="en-de"):
    return [line for block in open_reader(str(path), task).blocks(skip_bad=True) for line in block.bad]


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("mnmt_data.readers.byte_sources.CHUNK_BYTES", 50)
    monkeypatch.setattr("mnmt_data.readers.lines._BATCH", 3)


@SMALL
@given(pairs=PAIRS)
def test_csv_that_pythons_module_writes(tmp_path, pairs):
    text = io.StringIO()
    rows = [("id", "de", "en"), *((7, tgt, src) for src, tgt in pairs)]
    csv.writer(text, lineterminator="\n").writerows(rows)
    path = write(tmp_path / "x.csv", text.getvalue().replace("\r\n", "\n"))
    breaks = re.compile("\r\n|\n|\r")
    plain = [tuple(breaks.sub(" ", side) for side in pair) for pair in pairs]
    assert read(path) == plain


@SMALL
@given(pairs=PAIRS, nest=st.booleans())
def test_json_lines(tmp_path, pairs, nest):
    tables = [{"en": src, "de": tgt} for src, tgt in pairs]
    lines = [json.dumps({"id": 1, "translation": table} if nest else table) for table in tables]
    path = write(tmp_path / "x.jsonl.gz", gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    assert read(path) == [(src.replace("\n", " "), tgt.replace("\n", " ")) for src, tgt in pairs]


@pytest.mark.parametrize(
    ("header", "task", "pair"),
    [
        ("en\tde", "en-de", ("one", "zwei")),
        ("en\tde", "de-en", ("zwei", "one")),
        ("Source\tTarget", "en-de", ("one", "zwei")),
        ("eng_US\tdeu\tscore", "en-de", ("one", "zwei")),
        ("id\tsrc\ttgt", "en-de", ("zwei", "drei")),
        ("Introduction\tEinleitung", "en-de", None),
        ("the source\tdie Quelle", "en-de", None),
        ("source\tQuelle", "en-de", None),
        ("\tEN", "en-de", None),
        ("the\tder", "en-de", None),
    ],
)
def test_headers_of_tsv_are_noticed(tmp_path, header, task, pair):
    row = "one\tzwei\tdrei" if header.count("\t") == 2 else "one\tzwei"
    write(tmp_path / "x.tsv", f"{header}\n{row}\n")
    pairs = read(tmp_path / "x.tsv", task)
    assert pairs == ([pair] if pair else [tuple(header.split("\t")), ("one", "zwei")])


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n\n"])
def test_empty_lines_at_the_end_of_tsv_are_no_pairs(tmp_path, end):
    assert read(write(tmp_path / "x.tsv", f"a\tA\nb\tB{end}")) == [("a", "A"), ("b", "B")]
    with pytest.raises(DataError, match=r"x\.tsv:2: has 1 column, but the first line has 2"):
        read(write(tmp_path / "x.tsv", f"a\tA\n\nb\tB{end}"))


def test_the_formats_stand_in_corpus_folders(tmp_path):
    write(tmp_path / "train.en-de.csv", "en,de\na,A\n")
    write(tmp_path / "train.en-de.jsonl", '{"src": "b", "tgt": "B"}\n')
    write(tmp_path / "dev.de-en.jsonl", '{"src": "C", "tgt": "c"}\n')
    pairs = [pair for reader in find_readers(tmp_path, "train", "en-de") for pair in read(*reader.paths)]
    assert pairs == [("a", "A"), ("b", "B")]
    assert read(tmp_path / "dev.de-en.jsonl") == [("c", "C")]


MISTAKES = [
    (
        "x.tsv",
        "a\tA\nno tab\nb\tB\n",
        ":2: has 1 column, but the first line has 2; put one",
        "no tab",
    ),
    ("x.tsv", "id\ten\tde\n1\ta\n", ":2: has 2 columns, but the header has 3; put one tab", "1\ta"),
    ("x.tsv", b"a\tA\n\xff\tB\n", ":2: not valid UTF-8 (byte 0xff); perhaps", "\\xff\tB"),
    ("x.csv", "en,de\na\n", ":2: has 1 column, but the header has 2; quote cells with commas.", "a"),
    (
        "x.csv",
        b"en,de\na,A\n\xffb,B\n",
        ":3: not valid UTF-8 (byte 0xff); perhaps",
        "\\xffb,B",
    ),
    (
        "x.jsonl",
        '{"en": "a"\n',
        ":1: not JSON (Expecting ',' delimiter); give an object on every line.",
        '{"en": "a"',
    ),
    ("x.jsonl", "[1]\n", ":1: is no JSON object; give one on every line.", "[1]"),
    ("x.jsonl", '{"en": "a", "ed": "A"}\n', ":1: no columns for en-de among en, ed; name two after", '{"en"'),
    ("x.jsonl", '{"en": "a", "de": 3}\n', ":1: `de` must be a string, but is 3.", '{"en"'),
    ("x.jsonl", '{"en": "a", "de": "\\ud800"}\n', ":1: `de` holds half a surrogate pair", '{"en"'),
]


@pytest.mark.parametrize(("name", "text", "what", "excerpt"), MISTAKES)
def test_bad_lines_are_refused_or_listed(tmp_path, name, text, what, excerpt):
    path = write(tmp_path / name, text)
    with pytest.raises(DataError) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}{what}")
    (line,) = bad_lines(path)
    assert line.what == str(raised.value)
    assert line.text.startswith(excerpt)


def test_what_stands_around_bad_lines_is_read(tmp_path):
    lines = ["a\tA", "x", "b\tB", "", "c\tC", "y", "d\tD"]
    path = write(tmp_path / "x.tsv", "".join(f"{line}\n" for line in lines))
    bad = bad_lines(path)
    assert [line.row for line in bad] == [1, 3, 5]
    pairs = read(path, skip_bad=True)
    assert pairs[::2] == [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")]


@given(st.lists(st.sampled_from(["good", "bad en", "bad de", "bad both"]), max_size=20))
@SMALL
def test_a_bad_line_of_one_text_is_that_of_its_pair(tmp_path, kinds):
    for code in ("en", "de"):
        spoilt = (f"bad {code}", "bad both")
        lines = [b"\xc3(" if kind in spoilt else f"{code}{row}".encode() for row, kind in enumerate(kinds)]
        write(tmp_path / f"x.{code}", b"".join(line + b"\n" for line in lines))
    source = tmp_path / "x.{lang}"
    assert [line.row for line in bad_lines(source)] == [
        row for row, kind in enumerate(kinds) if kind != "good"
    ]
    pairs = read(source, skip_bad=True)
    assert len(pairs) == len(kinds)
    good = [row for row, kind in enumerate(kinds) if kind == "good"]
    assert [pairs[row] for row in good] == [(f"en{row}", f"de{row}") for row in good]


@pytest.mark.parametrize("skip_bad", [False, True])
@pytest.mark.parametrize(("row", "where"), [('"b,B\nc,C\n', 3), ('b,"B"x\nc,C\n', 3), ('"b\nb",B\n"c\n', 5)])
def test_wrong_quotes_are_refused_with_the_first_line_of_their_row(tmp_path, row, where, skip_bad):
    path = write(tmp_path / "x.csv", f"en,de\na,A\n{row}")
    with pytest.raises(DataError, match=rf"x\.csv:{where}: not CSV \(.*\); mend the quotes of this row\.$"):
        read(path, skip_bad=skip_bad)


def test_quotes_hold_commas_and_lines(tmp_path):
    path = write(tmp_path / "x.csv", 'en,de\n\n"d, \ne",E\nf"f,F\n')
    assert read(path) == [("d,  e", "E"), ('f"f', "F")]


@pytest.mark.parametrize(("cell", "bad"), [(b'"a\n\xff\nb",A', 1), (b"\xff,A\n\xfe", 2)])
def test_bad_lines_of_csv_leave_the_next_row_alone(tmp_path, cell, bad):
    path = write(tmp_path / "x.csv", b"en,de\n" + cell + b"\nc,C\n")
    assert len(bad_lines(path)) == bad
    assert read(path, skip_bad=True)[bad:] == [("c", "C")]


@pytest.mark.parametrize(
    ("name", "head", "line"),
    [
        ("x.tsv", "id\tnote\ten\tde\n", "1\t\t{0}\t{0}"),
        ("x.csv", "en,de\n", "{0},{0}"),
        ("x.jsonl", "", '{{"en": "{0}", "de": "{0}"}}'),
    ],
)
def test_an_overlong_record_is_an_empty_pair(tmp_path, name, head, line):
    texts = ["a", "b" * 70_000, "c"]
    path = write(tmp_path / name, head + "".join(line.format(text) + "\n" for text in texts))
    assert read(path) == [("a", "a"), ("", ""), ("c", "c")]


def test_blank_lines_between_objects_hold_nothing(tmp_path):
    path = write(tmp_path / "x.jsonl", '{"en": "a", "de": "A"}\n\n{"en": "b", "de": "B"}\n\n')
    assert read(path) == [("a", "A"), ("b", "B")]
