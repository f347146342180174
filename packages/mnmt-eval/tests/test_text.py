from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.errors import EvalError
from mnmt_eval.text import read_lines, read_text


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb", ["a", "b"]),
        (b"\xef\xbb\xbfa\n\n", ["a", ""]),
        ("a\u2028b\x0bc\x85\n".encode(), ["a\u2028b\x0bc\x85"]),
    ],
)
def test_lines_end_with_line_feeds_alone(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    (tmp_path / "text").write_bytes(content)
    assert read_lines(tmp_path / "text") == lines


def test_text_that_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\n\xff\n")
    with pytest.raises(EvalError, match=r"text:2: not valid UTF-8"):
        read_lines(tmp_path / "text")


SENTENCES = st.lists(
    st.text(st.characters(exclude_characters="\n\r\t", exclude_categories=["Cs"])), min_size=2, max_size=6
)


@given(SENTENCES, st.data())
def test_a_column_of_any_table_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[str], data: st.DataObject
) -> None:
    folder, others = tmp_path_factory.mktemp("tables"), data.draw(st.permutations(sentences))
    named, bare, objects = folder / "named.tsv", folder / "bare.tsv", folder / "lines.jsonl"
    quoted = folder / "quoted.csv"
    rows = list(zip(others, sentences, strict=True))
    bare.write_text("".join(f"{other}\t{ours}\n" for other, ours in rows), encoding="utf-8", newline="")
    named.write_text("other\tours\n" + bare.read_text(encoding="utf-8"), encoding="utf-8", newline="")
    records = [json.dumps({"other": other, "ours": ours}, ensure_ascii=False) for other, ours in rows]
    objects.write_text("".join(f"{record}\n" for record in records), encoding="utf-8")
    assert read_text(named, "ours", option="--column") == sentences
    with quoted.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("other", "ours"), *rows])
    assert read_text(objects, "ours", option="--column") == sentences
    assert read_text(quoted, "ours", option="--column") == sentences
    if "2" not in rows[0]:
        assert read_text(bare, "2", option="--column") == sentences


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.tsv", "src\tmt\na\tb\n", None, r"a table of 2 columns; name one with --column.*\(src, mt\)"),
        ("a.txt", "src\tmt\na\tb\n", None, "a table of 2 columns; name one with --column"),
        ("a.txt", '{"src": "a", "mt": "b"}\n', None, "holds JSON lines; name a key with --column: src, mt."),
        ("a.tsv", "src\tmt\na\tb\n", "ref", "no column 'ref' for --column; its first line has src, mt."),
        ("a.tsv", "src\tmt\na\tb\n", "3", "no column '3' for --column; it has 2 columns."),
        (
            "a.tsv",
            "src\tours\nA b.\tC d.\n",
            "2",
            r"a.tsv:1: holds names \(src, ours\): name the column, not",
        ),
        (
            "a.tsv",
            "src\tmt\na\n",
            "mt",
            r"a.tsv:2: must have as many columns as the first line \(2\), but has 1.",
        ),
        ("a.tsv", "mt\tmt\na\tb\n", "mt", "a.tsv:1: has 2 columns called 'mt'"),
        ("a.csv", 'src,mt\n"a, b",c\n', None, r"a table of 2 columns; name one with --column.*\(src, mt\)"),
        ("a.CSV", 'src,mt\n"a, b",c\n', None, r"a table of 2 columns; name one with --column.*\(src, mt\)"),
        ("a.csv", "mt\na\n", None, "a table of 1 column; name one with --column"),
        ("a.csv", 'src,mt\n"a, b",c\n', "ref", "no column 'ref' for --column; its first line has src, mt."),
        ("a.csv", "src,mt\na,b\na\n", "mt", r"a.csv:3: must have as many columns .* \(2\), but has 1."),
        ("a.csv", 'src,mt\na,"b\n', "mt", r"a.csv:2: not CSV: .*; check the quotes and ends of lines."),
        ("a.tsv", "", "mt", "has no column 'mt' for --column; its first line has no columns"),
        ("a.jsonl", '{"mt": "a"}\nb\n', "mt", "a.jsonl:2: must be a JSON object, but is b"),
        ("a.jsonl", '{"mt": "a"}\n\n', "mt", "a.jsonl:2: must be a JSON object, but is blank"),
        ("a.jsonl", '{"mt": "a"}\n', "src", "a.jsonl:1: has no key 'src'; .* mt"),
        ("a.jsonl", '{"mt": null}\n', "mt", "a.jsonl:1: 'mt' must be text, but is null"),
    ],
)
def test_a_table_without_the_column_is_refused(
    tmp_path: Path, name: str, content: str, column: str | None, message: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(EvalError, match=message):
        read_text(tmp_path / name, column, option="--column")


@pytest.mark.parametrize(
    "first",
    [
        "Hello\tHallo",  # no usual name
        "src\tsrc",  # one cell twice
        "source\tdie Quelle",  # two words
        "x1\tsource",  # a cell that recurs
        "ref\tVerweis!",  # no bare word
    ],
)
def test_a_first_sentence_is_not_taken_for_names(tmp_path: Path, first: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"{first}\nx1\tThe first one.\nx2\tThe second one.\n", encoding="utf-8")
    assert read_text(path, "2", option="--column")[0] == first.split("\t")[1]


def test_a_glossary_of_single_words_has_no_names(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("source\tQuelle\ntree\tBaum\n", encoding="utf-8")
    assert read_text(path, "2", option="--column") == ["Quelle", "Baum"]


@pytest.mark.parametrize(
    "content", ["one\ttab\n", "a\tb\nc\n", "no tabs\nat all\n", "{ a brace\n", "{}\tb\nc\n", ""]
)
def test_what_may_be_plain_lines_is_read_as_lines(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(content, encoding="utf-8")
    assert read_text(path, None, option="--column") == read_lines(path)


def test_a_cell_may_be_long(tmp_path: Path) -> None:
    cell = "a " * 100_000
    (tmp_path / "a.csv").write_text(f'src,mt\nb,"{cell}"\n', encoding="utf-8")
    assert read_text(tmp_path / "a.csv", "mt", option="--column") == [cell]
