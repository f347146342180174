"""`translate --model FOLDER` with a model of Hugging Face."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine
from hugging_face_folders import LINES, write_folder

from mnmt_model import export_run

pytest.importorskip("transformers", reason="the extra `hugging-face` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

STDIN = "".join(f"{line}\n" for line in ["", *LINES[:9], " ".join(["the old house."] * 40)]).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder("nllb", tmp_path_factory.mktemp("folder"))


def test_jobs_tags_and_windows_change_nothing(command_line: CommandLine, folder: Path) -> None:
    arguments = ("translate", "--model", folder, "--max-length", "1x+5")
    alone = command_line.run(*arguments, "--task", "en-de", stdin=STDIN)
    assert alone.status == 0, alone.stderr
    assert alone.stdout.count(b"\n") == 11
    assert "translated in parts: line 11" in alone.stderr
    tagged = b"".join(b"en-de\t" + line for line in STDIN.splitlines(keepends=True))
    others = [
        command_line.run(*arguments, "--task", "en-de", "--window-lines", "2", stdin=STDIN),
        command_line.run(*arguments, "--jobs", "2", stdin=tagged),
    ]
    assert [other.stdout for other in others] == [alone.stdout] * 2
    french = command_line.run(*arguments, "--task", "en-fr", stdin=STDIN)
    assert french.stdout != alone.stdout


def test_an_output_is_resumed_with_the_same_model_only(
    command_line: CommandLine, folder: Path, tmp_path: Path
) -> None:
    arguments = ("translate", "--model", folder, "--task", "en-de", "--window-lines", "3")
    expected = command_line.run(*arguments, stdin=STDIN)
    out = ("--out", tmp_path / "out.de")
    begun = b"".join(STDIN.splitlines(keepends=True)[:5])
    assert command_line.run(*arguments, *out, stdin=begun).status == 0
    again = command_line.run(*arguments, *out, stdin=STDIN)
    assert (again.status, (tmp_path / "out.de").read_bytes()) == (0, expected.stdout)
    assert "5 lines were translated before" in again.stderr
    as_json = command_line.run(*arguments, "--json", stdin=STDIN)
    assert json.loads(as_json.stdout.splitlines()[1])["target"] == "de"
    (folder / "README").write_text("new", encoding="utf-8")
    other = command_line.run(*arguments, *out, stdin=STDIN)
    assert other.status == 2
    assert "was made with weights" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "en-xx"], "cannot translate en-xx; it has ace_Arab"),
        (["--task", "en-zh"], "zh may be zho_Hans or zho_Hant"),
        (["--task", "en-de", "--max-length", "0x+99"], "has 64 positions, too few for `--max-length` 0x+99"),
        (["--task", "en-de", "--engine", "ctranslate2"], "make one with `ct2-transformers-converter"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    command_line: CommandLine, folder: Path, arguments: list[str], message: str
) -> None:
    done = command_line.run("translate", "--model", folder, *arguments, stdin=b"a\n")
    assert (done.status, done.stdout) == (2, b"")
    (line,) = done.stderr.splitlines()
    assert message in line


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_an_export_of_a_run_translates_as_the_run(
    command_line: CommandLine, tiny_run: Path, tmp_path: Path, engine: str
) -> None:
    pytest.importorskip("google.protobuf", reason="the extra `export` of mnmt-model is not installed")
    export_run(tiny_run, tmp_path / "export", pairs=4)
    stdin = (tiny_run.parents[1] / "data" / "text" / "test.xx-aa.xx").read_bytes()
    options = ("--task", "xx-aa", "--max-length", "0x+12")
    run = command_line.run("translate", "--model", tiny_run, *options, stdin=stdin)
    export = command_line.run(
        "translate", "--model", tmp_path / "export", *options, stdin=stdin, engine=engine
    )
    assert (export.status, export.stdout) == (0, run.stdout), export.stderr
