from __future__ import annotations

import gzip
import io

import pytest

from mnmt_data import DataError
from mnmt_data.errors import UserError
from mnmt_eval.errors import EvalError
from mnmt_eval.translate import SourceLine
from mnmt_eval.translate.lines import is_blank, source_lines, tagged_source_lines

NO_TEXT = [
    (gzip.compress(b"a\n", mtime=0), "stdin: is gzip-compressed"),
    ("a\n".encode("utf-16"), "stdin: is UTF-16 or UTF-32 text"),
    (b"a\rb\rc\r", "stdin: its lines end in carriage returns alone"),
    (b"<?xml version='1.0'?>\n<tmx/>\n", "stdin: is mark-up"),
]
UNTAGGED = (
    "in:2: must begin with its task and a tab, such as `en-de<TAB>text`; or name the task of all lines with "
    "--task."
)


def lines_of(content: bytes) -> list[SourceLine]:
    return list(source_lines(io.BytesIO(content), name="stdin", target="de"))


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n\nb\r\n", ["a", "", "b"]),
        (b"a\rb\x0bc\xc2\x85d\xe2\x80\xa8e\n", ["a\rb\x0bc\x85d\u2028e"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"a\t\x00 b\n", ["a\t\x00 b"]),
    ],
)
def test_lines_end_with_a_line_feed_and_nothing_else(content: bytes, texts: list[str]) -> None:
    lines = lines_of(content)
    assert [line.text for line in lines] == texts
    assert [line.number for line in lines] == list(range(1, len(texts) + 1))
    assert {line.target for line in lines} <= {"de"}


@pytest.mark.parametrize(("content", "message"), NO_TEXT)
def test_what_is_no_text_is_named(content: bytes, message: str) -> None:
    with pytest.raises(DataError) as complaint:
        lines_of(content)
    assert str(complaint.value).startswith(message)


def target_of(pair: str) -> str:
    if pair == "en-xx":
        raise DataError("no tag <2xx>")
    if "-" not in pair:
        raise EvalError("not a pair")
    return pair.partition("-")[2]


def test_tagged_lines_go_each_into_its_language() -> None:
    stream = io.BytesIO(b"en-de\ta\nen-fr\tb\tc\nen-de\t\n")
    lines = list(tagged_source_lines(stream, name="in", target_of=target_of))
    assert [(line.target, line.text) for line in lines] == [("de", "a"), ("fr", "b\tc"), ("de", "")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"en-de\ta\nb\n", UNTAGGED),
        (b"en-de\ta\n\n", UNTAGGED),
        (b"en-de\ta\nen-xx\tb\n", "in:2: no tag <2xx>"),
        (b"en-de\ta\nende\tb\n", "in:2: not a pair"),
        (
            b"en-de\ta\nab\xff\n",
            "in:2: not valid UTF-8 (byte 0xff); perhaps it is Windows-1252 or ISO-8859-1; "
            "convert the file to UTF-8.",
        ),
    ],
)
def test_a_bad_line_is_told_by_its_number_after_those_before(content: bytes, message: str) -> None:
    lines = tagged_source_lines(io.BytesIO(content), name="in", target_of=target_of)
    assert next(lines).text == "a"
    with pytest.raises(UserError) as complaint:
        next(lines)
    assert str(complaint.value) == message


@pytest.mark.parametrize("text", ["a", "\u200d\U0001f469", "\u0301", "\ue000", "\U0001fae9", " ."])
def test_what_leaves_ink_is_not_blank(text: str) -> None:
    assert not is_blank(text)
