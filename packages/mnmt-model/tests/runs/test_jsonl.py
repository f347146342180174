from pathlib import Path

import pytest

from mnmt_model import RunError, jsonl


def test_a_line_cut_off_by_a_kill_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    jsonl.append_lines(path, [{"step": 1}, {"step": 2}])
    path.write_text(path.read_text() + '{"step": 3', encoding="utf-8")
    assert list(jsonl.read_lines(path)) == [{"step": 1}, {"step": 2}]
    jsonl.keep_lines_up_to(path, 1)
    assert path.read_text() == '{"step": 1}\n'


def test_appending_replaces_a_line_cut_off_by_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"step": 1}\n{"ste', encoding="utf-8")
    jsonl.append_lines(path, [{"step": 2}])
    assert list(jsonl.read_lines(path)) == [{"step": 1}, {"step": 2}]


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"step": 1}\nnonsense\n{"step": 2}\n', encoding="utf-8")
    with pytest.raises(RunError, match=r"lines\.jsonl:2: not valid JSON; remove the line"):
        list(jsonl.read_lines(path))


def test_a_missing_file_has_no_lines_and_is_no_json(tmp_path: Path) -> None:
    assert list(jsonl.read_lines(tmp_path / "none.jsonl")) == []
    with pytest.raises(RunError, match=r"none\.json: no such file"):
        jsonl.read_json(tmp_path / "none.json")
