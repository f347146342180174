from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd

from mnmt_data import DataError
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nab\xff\n", r"text:2: not valid UTF-8 \(byte 0xff\); perhaps it is Windows-1252"),
        ("größer\n".encode("utf-16"), r"text: is UTF-16 or UTF-32 text"),
        (b"eins\rzwei\rdrei\r", r"text: its lines end in carriage returns alone"),
        (gzip.compress(b"a\n", mtime=0), r"text: is gzip-compressed; unpack it, or let its name end in \.gz"),
        (b"PK\x03\x04", r"text: is a zip archive, not text"),
        (
            b"<tmx><body><tu><tuv><seg>a</seg></tuv></tu></body></tmx>",
            r"is mark-up \(<tmx\), not a sentence a line; give text",
        ),
        (b"<html>\n", r"text: is mark-up \(<html>\), not a sentence a line"),
        (b"<tstset>\n<seg>a</seg>\n", r"text: is WMT's mark-up \(<tstset\), .*; give its segments as text"),
    ],
)
def test_what_is_no_text_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_text(tmp_path / "text")


@pytest.mark.parametrize(
    ("ending", "pack"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstd.compress)],
)
def test_compressed_text_is_read(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"text{ending}"
    path.write_bytes(pack("eins\u2028\nzwei\r\n".encode()))
    assert read_text(path) == ["eins\u2028", "zwei"]
    (tmp_path / f"a.csv{ending}").write_bytes(pack(b'src,mt\n"a, b",c\n'))
    assert read_text(tmp_path / f"a.csv{ending}", "src") == ["a, b"]


def write(folder: Path, name: str, content: str) -> Path:
    (folder / name).write_text(content, encoding="utf-8", newline="\n")
    return folder / name


@pytest.mark.parametrize(
    ("name", "content", "column", "expected"),
    [
        ("a.tsv", "src\tmt\nDo it.\tTu es.\n\tJa\n", "mt", ["Tu es.", "Ja"]),
        ("a.tsv", 'Do it.\tTu "es".\nYes\tJa\n', "2", ['Tu "es".', "Ja"]),
        ("a.csv", 'src,mt\n"a, b","c ""d"""\nx,\n', "mt", ['c "d"', ""]),
        ("a.jsonl", '{"id": 1, "mt": "a\\tb"}\n{"mt": ""}\n', "mt", ["a\tb", ""]),
    ],
)
def test_a_column_is_read(tmp_path: Path, name: str, content: str, column: str, expected: list[str]) -> None:
    assert read_text(write(tmp_path, name, content), column) == expected


@pytest.mark.parametrize(
    ("content", "column", "message"),
    [
        ("src\tmt\na\tb\n", "ref", "must have one column 'ref' for --column; it has src, mt"),
        ("src\tmt\na\tb\n", "3", "must have one column '3' for --column"),
        ("src\tmt\na b\tb c\n", "2", "a:1: holds names [(]src, mt[)]: name the column, not its number"),
        ("mt\tmt\na\tb\n", "mt", "must have one column 'mt'"),
        ("src\tmt\na\n", "mt", "a:2: must have 2 columns, as the first line has, but has 1"),
        ('{"mt": "a"}\n{"src": "a"}\n', "mt", "a:2: has no text under 'mt' for --column; it has src"),
        ('{"mt": "a"}\n[]\n', "mt", "a:2: must be a JSON object, but is"),
    ],
)
def test_a_column_that_is_missing_is_named(tmp_path: Path, content: str, column: str, message: str) -> None:
    with pytest.raises(EvalError, match=message):
        read_text(write(tmp_path, "a", content), column)


def test_quotes_that_do_not_match_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match=r"a.csv:2: not CSV: .*; check the quotes"):
        read_text(write(tmp_path, "a.csv", 'src,mt\na,"b\n'), "mt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("src\tmt\na\tb\n", "a: is a table; name a column with --column"),
        ('{"mt": "a"}\n', "a: holds JSON lines; name the key of the texts with --column"),
    ],
)
def test_a_table_is_refused_without_a_column(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(EvalError, match=message):
        read_text(write(tmp_path, "a", content))
