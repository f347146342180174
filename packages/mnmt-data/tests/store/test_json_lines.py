import errno
from pathlib import Path

import pytest

from mnmt_data.errors import DataError
from mnmt_data.store.json_lines import append_json_lines, read_json, read_json_lines, write_json_lines


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lines.jsonl"


def test_a_line_cut_off_by_a_kill_is_left_out_and_replaced(path):
    append_json_lines(path, [{"step": 1}, {"step": 2}])
    path.write_text(path.read_text(encoding="utf-8") + '{"step": 3', encoding="utf-8")
    assert list(read_json_lines(path)) == [{"step": 1}, {"step": 2}]
    append_json_lines(path, [{"step": "ü"}])
    assert path.read_text(encoding="utf-8") == '{"step": 1}\n{"step": 2}\n{"step": "ü"}\n'


def test_lines_are_replaced_as_a_whole(path):
    write_json_lines(path, [{"step": 1}, {"step": 2}])
    write_json_lines(path, [{"step": 1}])
    assert list(read_json_lines(path)) == [{"step": 1}]
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [DataError, KeyError])
def test_a_broken_line_and_a_broken_file_are_named(path, error):
    path.write_text('{"step": 1}\nnonsense\n{"step": 2}\n', encoding="utf-8")
    with pytest.raises(error, match=r"lines\.jsonl:2: not valid JSON; remove the line"):
        list(read_json_lines(path, error=error))
    with pytest.raises(error, match=r"lines\.jsonl: not valid JSON \(.*\)"):
        read_json(path, error=error)


def test_a_missing_file_has_no_lines_and_is_no_json(path):
    assert list(read_json_lines(path)) == []
    with pytest.raises(DataError, match=r"lines\.jsonl: no such file"):
        read_json(path)


def test_a_file_that_another_machine_replaces_is_read_again(path, monkeypatch):
    texts = [OSError(errno.ESTALE, "Stale file handle"), "[1]"]

    def read_text(path, encoding):
        text = texts.pop(0)
        if isinstance(text, OSError):
            raise text
        return text

    monkeypatch.setattr(Path, "read_text", read_text)
    assert read_json(path) == [1]
    texts += [OSError(errno.EIO, "Input/output error")]
    with pytest.raises(OSError, match="Input/output"):
        read_json(path)
