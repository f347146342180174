from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_eval.errors import EvalError
from mnmt_eval.translate import Candidate, Line, Translation
from mnmt_eval.translate.inputs import sources_of
from mnmt_eval.translate.lines import read_lines, read_tagged_lines
from mnmt_eval.translate.outputs import FileOutput, Remarks, StreamOutput
from mnmt_eval.translate.translation import FORMATS, Format


def lines_of(content: bytes) -> list[Line]:
    return list(read_lines(io.BytesIO(content), name="stdin", target="de"))


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


@given(before=st.lists(st.binary(max_size=3)), after=st.lists(st.binary(max_size=3)))
def test_digests_tell_how_a_text_begins(before: list[bytes], after: list[bytes]) -> None:
    def digest(parts: Sequence[bytes]) -> list[str]:
        content = b"".join(part.hex().encode() + b"\n" for part in parts)
        return [line.digest for line in lines_of(content)]

    assert digest([*before, *after])[: len(before)] == digest(before)
    if before != after and before and after:
        assert digest(before)[-1] != digest(after)[-1]


def target_of(pair: str) -> str:
    if pair == "en-xx":
        raise DataError("no tag <2xx>")
    if "-" not in pair:
        raise EvalError("not a pair")
    return pair.partition("-")[2]


def test_tagged_lines_go_each_into_its_language() -> None:
    stream = io.BytesIO(b"en-de\ta\nen-fr\tb\tc\nen-de\t\n")
    lines = list(read_tagged_lines(stream, name="in", target_of=target_of))
    assert [(line.target, line.text) for line in lines] == [("de", "a"), ("fr", "b\tc"), ("de", "")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"en-de\ta\nb\n", "in:2: must begin with its pair and a tab, such as `en-de<TAB>text`."),
        (b"en-de\ta\n\n", "in:2: must begin with its pair and a tab, such as `en-de<TAB>text`."),
        (b"en-de\ta\nen-xx\tb\n", "in:2: no tag <2xx>"),
        (b"en-de\ta\nende\tb\n", "in:2: not a pair"),
        (b"en-de\ta\n\xff\n", "in:2: not valid UTF-8; convert the text to UTF-8."),
    ],
)
def test_a_bad_line_is_told_by_its_number_after_those_before(content: bytes, message: str) -> None:
    lines = read_tagged_lines(io.BytesIO(content), name="in", target_of=target_of)
    assert next(lines).text == "a"
    with pytest.raises(EvalError) as told:
        next(lines)
    assert str(told.value) == message


def translation(*texts: str, parts: int = 1, complete: bool = True) -> Translation:
    found = (
        Candidate(text=text, score=-0.5 - i, log_prob=-1.5, complete=complete) for i, text in enumerate(texts)
    )
    return Translation(n_best=tuple(found), parts=parts)


LINE = Line(text="x", target="de", number=7)


def test_what_is_written_of_a_translation() -> None:
    found = translation("eins", "z\twei")
    assert FORMATS["text"](LINE, found) == "eins\n"
    assert FORMATS["table"](LINE, found) == "7\t-0.500000\teins\n7\t-1.500000\tz\twei\n"
    written = FORMATS["json"](LINE, translation("eins \u2028 ä", parts=2, complete=False))
    assert written.count("\n") == 1
    assert json.loads(written) == {
        "line": 7,
        "target": "de",
        "text": "eins \u2028 ä",
        "score": -0.5,
        "truncated": True,
        "parts": 2,
        "n_best": [{"text": "eins \u2028 ä", "score": -0.5, "log_prob": -1.5, "complete": False}],
    }


def test_remarks_name_the_lines() -> None:
    lines = [Line(text="x", target="de", number=number) for number in range(1, 31)]
    remarks = Remarks().after((line, translation("y", parts=2)) for line in lines[:25])
    assert remarks == Remarks.read(json.loads(json.dumps(asdict(remarks))))
    remarks = remarks.after([(lines[25], translation("y")), (lines[26], translation("y", complete=False))])
    first = ", ".join(map(str, range(1, 21)))
    assert list(remarks.told(max_source=64)) == [
        f"longer than 64 tokens, so translated in parts: lines {first} and 5 more",
        "cut off at its maximal length, the translation of line 27",
    ]
    assert list(Remarks().told(max_source=64)) == []


SOURCE = b"a\nb\nc\nd\n"
MADE_WITH = {"pair": "en-de", "step": 10}


def write(
    path: Path, count: int, *, source: bytes = SOURCE, form: Format = "text", made_with: object = MADE_WITH
) -> list[str]:
    """Translates the next `count` lines into `path`, and ends without a word; those it was asked for."""
    assert isinstance(made_with, dict)
    with closing(FileOutput(path, form, made_with)) as output:
        asked = list(islice(output.remaining(iter(lines_of(source))), count))
        output.write([(line, translation(line.text.upper(), parts=2)) for line in asked])
    return [line.text for line in asked]


def test_a_file_is_taken_up_where_it_was_left(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out.de"
    assert write(path, 1) == ["a"]
    with path.open("ab") as file:
        file.write(b"half a li")  # as if killed while it was being written
    assert write(path, 2) == ["b", "c"]
    assert path.read_bytes() == b"A\nB\nC\n"
    assert write(path, 9) == ["d"]
    assert write(path, 9) == []
    assert write(path, 9, source=SOURCE + b"e") == ["e"]
    assert path.read_bytes() == b"A\nB\nC\nD\nE\n"
    with closing(FileOutput(path, "text", MADE_WITH)) as output:
        assert (output.lines, output.remarks.in_parts.first) == (5, [1, 2, 3, 4, 5])


def test_two_cannot_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "out.de"
    with closing(FileOutput(path, "text", MADE_WITH)) as output:
        with pytest.raises(EvalError, match=r"out\.de: another process is writing it"):
            FileOutput(path, "text", MADE_WITH)
        output.write([(line, translation("x")) for line in lines_of(b"a\n")])
    assert write(path, 9) == ["b", "c", "d"]
    assert path.read_bytes() == b"X\nB\nC\nD\n".replace(b"X", b"x")


def test_an_empty_file_or_one_that_was_removed_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "out.de"
    path.touch()
    assert write(path, 1) == ["a"]
    path.unlink()
    assert write(path, 1, made_with={"pair": "en-fr"}) == ["a"]
    assert path.read_bytes() == b"A\n"


def record_of(path: Path) -> Path:
    return path.with_name(path.name + ".record.json")


@pytest.mark.parametrize("record", [None, b"", b"[]", b'{"lines": 2}'])
def test_a_file_that_nothing_is_known_of_is_not_touched(tmp_path: Path, record: bytes | None) -> None:
    path = tmp_path / "out.de"
    path.write_bytes(b"precious\n")
    if record is not None:
        record_of(path).write_bytes(record)
    with pytest.raises(EvalError, match=r"says how it was made|does not say how out\.de was made"):
        write(path, 1)
    assert path.read_bytes() == b"precious\n"


@pytest.mark.parametrize(
    ("source", "form", "made_with", "message"),
    [
        (b"a\nB\nc\nd\n", "text", MADE_WITH, "holds translations of 2 lines that do not begin this input"),
        (b"a\n", "text", MADE_WITH, "holds translations of 2 lines that do not begin this input"),
        (SOURCE, "json", MADE_WITH, "was made with format text, and is now asked for with json"),
        (SOURCE, "text", MADE_WITH | {"step": 20}, "was made with step 10, and is now asked for with 20"),
    ],
)
def test_a_file_made_of_something_else_is_not_touched(
    tmp_path: Path, source: bytes, form: Format, made_with: object, message: str
) -> None:
    path = tmp_path / "out.de"
    write(path, 2)
    before = path.read_bytes(), record_of(path).read_bytes()
    with pytest.raises(EvalError, match=message):
        write(path, 1, source=source, form=form, made_with=made_with)
    assert (path.read_bytes(), record_of(path).read_bytes()) == before


def test_a_file_that_has_lost_something_is_not_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "out.de"
    write(path, 2)
    path.write_bytes(b"A\n")
    with pytest.raises(EvalError, match="is shorter than it was when it was written"):
        write(path, 1)


@pytest.mark.parametrize("path", ["/dev/null", "/dev"])
def test_only_a_regular_file_can_be_taken_up(path: str) -> None:
    with pytest.raises(EvalError, match="is not a regular file"):
        write(Path(path), 1)


class Full(io.BytesIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_cannot_be_written_is_named() -> None:
    output = StreamOutput(Full(), "text", name="stdout")
    with pytest.raises(OSError, match="No space left") as told:
        output.write([(LINE, translation("a"))])
    assert told.value.filename == "stdout"


def test_a_folder_holds_the_sources_of_many_pairs(tmp_path: Path) -> None:
    names = "a.en b.en-de.en b.en-de.de b.de-en.en c.en-fr.en d.2014-05.en e.x.en f.de g.en.gz"
    for name in names.split():
        (tmp_path / name).touch()
    found = {name: path.name for name, path in sources_of(tmp_path, "en-de").items()}
    assert found == {
        "a.en-de.de": "a.en",
        "b.en-de.de": "b.en-de.en",
        "d.2014-05.en-de.de": "d.2014-05.en",
        "e.x.en-de.de": "e.x.en",
    }
    assert list(sources_of(tmp_path, "de-en")) == ["f.de-en.en"]
    with pytest.raises(EvalError, match=r"holds neither NAME\.fr nor NAME\.fr-en\.fr to translate\."):
        sources_of(tmp_path, "fr-en")
    (tmp_path / "b.en").touch()
    with pytest.raises(
        EvalError, match=r"b\.en-de\.en: its translation would be b\.en-de\.de, as that of b\.en is"
    ):
        sources_of(tmp_path, "en-de")
