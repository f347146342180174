"""Other people's systems: the same numbers however files lie, and one line for what does not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from corpora import GERMAN
from text_files import write

SENTENCES = 6
"""The corpus' last line is blank, and is refused without its source."""

FEW = ("--samples", "20", "--permutations", "20", "--json")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the same systems in files and in a folder."""
    monkeypatch.chdir(tmp_path)
    texts = [GERMAN.sources, *GERMAN.references[:2], GERMAN.hypotheses, GERMAN.others]
    names = ("src", "ref", "ref2", "one", "two")
    sides = {name: text[:SENTENCES] for name, text in zip(names, texts, strict=True)}
    systems = {name: sides[name] for name in ("one", "two")}
    for name, lines in sides.items():
        write(tmp_path / name, lines)
    for name, lines in systems.items():
        write(tmp_path / "outputs" / name, lines)
    for name in ("README.md", ".one.7.1a2b.tmp", "one.tmp", "two.record.json"):
        write(tmp_path / "outputs" / name, ["no translations"])
    write(tmp_path / "table", [f"{line}\t1" for line in sides["one"]])
    write(tmp_path / "objects", [json.dumps({"mt": line}) for line in sides["one"]])
    columns = zip(*sides.values(), strict=True)
    write(tmp_path / "all.tsv", ["\t".join(row) for row in (names, *columns)])
    write(tmp_path / "n-best", [f"{number} ||| {line} ||| -1" for number, line in enumerate(sides["one"])])
    write(tmp_path / "blank-end", [*sides["one"], ""])
    write(tmp_path / "twice", [line for line in sides["one"] for _ in range(2)])
    write(tmp_path / "gaps", [sides["ref"][0], "", *sides["ref"][2:]])
    (tmp_path / "empty").mkdir()
    return tmp_path


def compared(command_line: CommandLine, command: str) -> list[dict[str, Any]]:
    done = command_line.run("compare", *command.split(), *FEW)
    assert done.status == 0, done.stderr
    comparisons: list[dict[str, Any]] = json.loads(done.stdout)["comparisons"]
    return comparisons


@pytest.mark.parametrize(
    "command",
    [
        "outputs --reference ref --task en-de",
        "one two --reference ref --tokenizer 13a",
        "all.tsv --column one --column two --reference-column ref --source-column src --task en-de",
        "all.tsv --column one --column two --reference ref --source src --task en-de",
    ],
)
def test_the_numbers_are_those_of_plain_files(command_line: CommandLine, folder: Path, command: str) -> None:
    (plain,) = compared(command_line, "one two --reference ref --source src --task en-de")
    (other,) = compared(command_line, command)
    for ours, theirs in zip(plain["metrics"], other["metrics"], strict=True):
        values = [[{**system, "system": ""} for system in each["systems"]] for each in (ours, theirs)]
        assert values[0] == values[1]


def test_systems_are_called_as_their_files_and_columns(command_line: CommandLine, folder: Path) -> None:
    for command, names in {
        "outputs --reference ref --task en-de": ["one", "two"],
    }.items():
        (each,) = compared(command_line, command)
        assert [system["system"] for system in each["metrics"][0]["systems"]] == names
        assert each["baseline"] == (names[0] if len(names) > 1 else None)


def test_files_of_a_folder_that_are_left_out_are_named(
    command_line: CommandLine, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "outputs" / "nmt.v2.lock").write_text("no translations")
    done = command_line.run("compare", *["outputs", "--reference", "ref", "--task", "en-de"], *FEW)
    line = "outputs: README.md, nmt.v2.lock, one.tmp left out; name a file itself to compare it"
    assert (done.status, caplog.messages) == (0, [line])
    (folder / "empty" / "baseline.orig").write_text("no translations")
    refused = command_line.run("compare", "empty", "--reference", "ref", *FEW)
    assert "neither runs nor files with translations but baseline.orig." in refused.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("one --reference ref --column mt", "must have one column 'mt' for --column"),
        ("all.tsv --reference ref", "all.tsv: is a table; name a column with --column"),
        ("one --reference-column ref", "--reference-column: of which file?"),
        ("one --reference ref", "bleu: needs the target language; .* --task .* --tokenizer"),
        ("one --reference ref --metric language", "language: needs the target language; .* --task"),
        ("one --reference ref --source src --metric chrf --by length", "groups by length need .* --task"),
        ("empty --reference ref", "empty: holds neither runs nor files"),
        ("ours=outputs --reference ref", "outputs: holds 2 files, so one name"),
        ("table --reference ref --task en-de", "table: is a table; name a column with --column"),
        ("objects --reference ref --task en-de", "objects: holds JSON lines; name the key of the texts with"),
        ("missing --reference ref", "missing: no such file or run; its folder holds all.tsv, .* more."),
        (
            "one --reference missing --task en-de",
            "missing: no such file; its folder holds all.tsv, .* more.",
        ),
        (
            "blank-end --reference ref --task en-de",
            "must have 6 lines, .* but has 7, of which the last is blank",
        ),
        (
            "twice --reference ref --task en-de",
            "must have 6 lines, .* but has 12, 2 times as many: if these are candidates, `mnmt-eval rerank`",
        ),
        ("n-best --reference ref --task en-de", "n-best: is an n-best list; choose .* `mnmt-eval rerank`."),
        ("one --reference empty --task en-de", "empty: is a folder; name a file in it."),
        ("one --reference gaps --task en-de", "gaps:2: must have a reference, but is blank"),
    ],
)
def test_a_mistake_is_one_line_with_the_file_and_the_option(
    command_line: CommandLine, folder: Path, command: str, message: str
) -> None:
    done = command_line.run("compare", *command.split(), *FEW)
    assert (done.status, done.stdout) == (2, b"")
    (line,) = done.stderr.splitlines()
    assert line.startswith("mnmt-eval: ")
    assert re.search(message, line)


def test_outputs_of_fairseq_are_read_by_number(command_line: CommandLine, folder: Path) -> None:
    lines = (folder / "one").read_text(encoding="utf-8").splitlines()
    generated = [f"H-{number}\t-0.5\t{line}" for number, line in enumerate(lines)]
    write(folder / "generated", ["INFO | fairseq | step"] * 300 + sorted(generated, key=len))
    (plain,) = compared(command_line, "x=one --reference ref --task en-de")
    (other,) = compared(command_line, "x=generated --reference ref --task en-de")
    assert other == plain


def test_marks_of_subwords_are_one_remark_beside_the_scores(command_line: CommandLine, folder: Path) -> None:
    lines = (folder / "one").read_text(encoding="utf-8").splitlines()
    write(folder / "pieces", [f"▁{line.replace(' ', ' ▁')}" for line in lines])
    done = command_line.run("compare", *["one", "pieces", "--reference", "ref", "--task", "en-de"], *FEW)
    assert done.status == 0
    *_, remark = remarks = done.stderr.splitlines()
    assert json.loads(done.stdout)["remarks"] == remarks
    assert remark == "pieces: 6 of 6 lines have SentencePiece's ▁, first line 1; join the pieces of words"
