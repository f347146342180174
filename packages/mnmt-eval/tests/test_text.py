from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("src\tmt\na\tb\n", "a: is a table; write one column to a file"),
        ('{"mt": "a"}\n', "a: holds JSON lines; write the texts of one key to a file"),
    ],
)
def test_a_table_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a").write_text(content, encoding="utf-8")
    with pytest.raises(EvalError, match=message):
        read_text(tmp_path / "a")


@pytest.mark.parametrize("content", ["a\tb\n", "a\tb\nc\n", "{a\n"])
def test_a_sentence_may_have_a_tab_or_a_brace(tmp_path: Path, content: str) -> None:
    (tmp_path / "a").write_text(content, encoding="utf-8")
    assert read_text(tmp_path / "a") == content.splitlines()
