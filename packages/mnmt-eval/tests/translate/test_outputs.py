from __future__ import annotations

import errno
import io
import json
import os
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import pytest

from mnmt_eval.errors import EvalError
from mnmt_eval.translate import ScoredTranslation, SourceLine, Translation
from mnmt_eval.translate.lines import source_lines
from mnmt_eval.translate.outputs import FileOutput, Remarks, StreamOutput, open_file_output
from mnmt_eval.translate.translation import Format


def lines_of(content: bytes) -> list[SourceLine]:
    return list(source_lines(io.BytesIO(content), name="stdin", target="de"))


def translation(text: str, *, parts: int = 1, complete: bool = True) -> Translation:
    candidate = ScoredTranslation(text=text, score=-0.5, log_prob=-1.5, complete=complete)
    return Translation(n_best=(candidate,), parts=parts)


LINE = SourceLine(text="x", target="de", number=7)


def test_remarks_name_the_lines() -> None:
    lines = [SourceLine(text="x", target="de", number=number) for number in range(1, 31)]
    remarks = Remarks().extend((line, translation("y", parts=2)) for line in lines[:25])
    assert remarks == Remarks.from_dict(json.loads(json.dumps(asdict(remarks))))
    remarks = remarks.extend([(lines[25], translation("y")), (lines[26], translation("y", complete=False))])
    first = ", ".join(map(str, range(1, 21)))
    assert list(remarks.messages(max_source=64)) == [
        f"longer than 64 tokens, so translated in parts: lines {first} and 5 more",
        "cut off at its maximal length, the translation of line 27",
    ]
    assert list(Remarks().messages(max_source=64)) == []


SOURCE = b"a\nb\nc\nd\n"
MADE_WITH = {"pair": "en-de", "step": 10}


def write(
    path: Path, count: int, *, source: bytes = SOURCE, form: Format = "text", made_with: object = MADE_WITH
) -> list[str]:
    """Translates the next `count` lines into `path`, and ends without a word; those it was asked for."""
    assert isinstance(made_with, dict)
    with closing(FileOutput(path, form, made_with)) as output:
        asked = list(islice(output.skip_written(iter(lines_of(source))), count))
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
    with open_file_output(path, "text", MADE_WITH) as output:
        with (
            pytest.raises(EvalError, match=r"out\.de: another process is writing it"),
            open_file_output(path, "text", MADE_WITH),
        ):
            pass
        output.write([(line, translation("x")) for line in lines_of(b"a\n")])
    assert write(path, 9) == ["b", "c", "d"]
    assert path.read_bytes() == b"X\nB\nC\nD\n".replace(b"X", b"x")


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


class Full(io.BytesIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_cannot_be_written_is_named() -> None:
    output = StreamOutput(Full(), "text", name="stdout")
    with pytest.raises(OSError, match="No space left") as complaint:
        output.write([(LINE, translation("a"))])
    assert complaint.value.filename == "stdout"
