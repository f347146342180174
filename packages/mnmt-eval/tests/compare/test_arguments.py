"""Other people's systems: the same numbers however files lie, and one line for what does not fit."""

from __future__ import annotations

import csv
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
    """The working folder, with the same systems as files, as tables and in WMT's layout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", "sacrebleu")
    texts = [GERMAN.sources, *GERMAN.references[:2], GERMAN.hypotheses, GERMAN.others]
    names = ("src", "ref", "ref2", "one", "two")
    sides = {name: text[:SENTENCES] for name, text in zip(names, texts, strict=True)}
    systems = {name: sides[name] for name in ("one", "two")}
    for name, lines in sides.items():
        write(tmp_path / name, lines)
    rows = list(zip(*sides.values(), strict=True))
    write(tmp_path / "table.tsv", ["\t".join(sides), *map("\t".join, rows)])
    write(tmp_path / "bare.txt", ["\t".join(row) for row in rows])
    with (tmp_path / "table.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([list(sides), *rows])
    write(tmp_path / "lines.jsonl", [json.dumps(dict(zip(sides, row, strict=True))) for row in rows])
    for name, lines in systems.items():
        write(tmp_path / "outputs" / name, lines)
        write(tmp_path / "tables" / name, ["mt\tnumber", *(f"{line}\t1" for line in lines)])
        write(tmp_path / "wmt24" / "system-outputs" / "en-de" / f"{name}.txt", lines)
    write(tmp_path / "wmt24" / "references" / "en-de.refA.txt", sides["ref"])
    write(tmp_path / "wmt24" / "sources" / "en-de.txt", sides["src"])
    write(tmp_path / "sacrebleu" / "wmt19" / "wmt19.en-de.ref", sides["ref"])
    write(tmp_path / "sacrebleu" / "wmt19" / "wmt19.en-de.src", sides["src"])
    write(tmp_path / "gaps", [sides["ref"][0], "", *sides["ref"][2:]])
    write(tmp_path / "lists.jsonl", ["[1, 2]"] * SENTENCES)
    write(tmp_path / "list.json", ["[", *['{"mt": "a"},'] * SENTENCES, "]"])
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
        "outputs --reference sacrebleu:wmt19 --task en-de",
        "table.tsv --column one,two --reference-column ref --task en-de",
        "table.tsv --column one,two --reference ref --source-column src --source table.tsv --task en-de",
        "bare.txt --column 4 --column 5 --reference-column 2 --task en-de",
        "lines.jsonl --column one,two --reference table.tsv --reference-column ref --task en-de",
        "tables --column mt --reference ref --task en-de",
        "table.csv --column one,two --reference-column ref --task en-de",
        "one two --reference table.csv --reference-column ref --source-column src --task en-de",
        "wmt24",
        "wmt24/system-outputs/en-de --reference ref",
        "one two --reference ref --tokenizer 13a",
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
        "wmt24": ["one", "two"],
        "ours=one wmt24 --task en-de": ["ours", "one", "two"],
        "wmt24 ours=one --task en-de": ["one", "two", "ours"],
        "table.tsv --column two --reference-column ref --metric chrf": ["table.tsv"],
        "table.tsv lines.jsonl --column one,two --reference ref --metric chrf": [
            *("table.tsv:one", "table.tsv:two", "lines.jsonl:one", "lines.jsonl:two")
        ],
    }.items():
        (each,) = compared(command_line, command)
        assert [system["system"] for system in each["metrics"][0]["systems"]] == names
        assert each["baseline"] == (names[0] if len(names) > 1 else None)


def test_several_columns_of_references_are_taken_together(command_line: CommandLine, folder: Path) -> None:
    (plain,) = compared(command_line, "one --reference ref ref2 --task en-de")
    (table,) = compared(command_line, "table.tsv --column one --reference-column ref,ref2 --task en-de")
    assert [each["systems"][0]["value"] for each in table["metrics"]] == [
        each["systems"][0]["value"] for each in plain["metrics"]
    ]
    assert "nrefs:2" in table["metrics"][0]["systems"][0]["signature"]


def test_texts_have_the_name_of_their_test_set(command_line: CommandLine, folder: Path) -> None:
    for command, name in {
        "one --reference sacrebleu:wmt19 --task en-de": ("wmt19", "en-de"),
        "wmt24": ("wmt24", "en-de"),
        "one --reference ref --metric chrf,ter": ("test", ""),
    }.items():
        (each,) = compared(command_line, command)
        assert (each["testset"], each["task"]) == name


def test_every_pair_of_a_folder_is_compared_with_its_systems(command_line: CommandLine, folder: Path) -> None:
    write(folder / "wmt24" / "system-outputs" / "en-fr" / "three.txt", GERMAN.hypotheses[:SENTENCES])
    write(folder / "wmt24" / "references" / "en-fr.refA.txt", GERMAN.references[0][:SENTENCES])
    done = command_line.run("compare", "wmt24", "--samples", "20", "--permutations", "20")
    assert done.status == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert {"wmt24 en-de, 6 sentences", "wmt24 en-fr, 6 sentences"} <= set(lines)


def test_a_page_takes_the_same(command_line: CommandLine, folder: Path) -> None:
    done = command_line.run("compare", "wmt24", "--page", "page")
    assert done.status == 0, done.stderr
    command = "compare table.tsv --column one --reference-column ref --metric chrf --page page"
    assert command_line.run(*command.split()).status == 0
    assert GERMAN.hypotheses[0].split()[0] in (folder / "page" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "table.tsv --reference ref --task en-de",
            "table.tsv: is a table of 5 columns; name one with --column",
        ),
        ("one --reference bare.txt --task en-de", "bare.txt: is a table .* --reference-column"),
        ("one --reference ref --source table.tsv --task en-de", "table.tsv: is a table .* --source-column"),
        ("table.csv --reference ref", "table.csv: is a table of 5 columns; name one with --column"),
        ("wmt24 --column one", "--column one: is of use only with tables, but wmt24 is none"),
        ("lines.jsonl --reference ref", "lines.jsonl: holds JSON lines; name a key with --column: src, ref"),
        ("table.tsv --column mt --reference ref", "table.tsv: has no column 'mt' for --column"),
        ("table.tsv lines.jsonl --column one --reference-column ref", "--reference-column: of which file"),
        ("one --reference-column ref", "--reference-column: of which file"),
        ("one --source src", "--source src: is of use only with references"),
        ("one --source-column src", "--source-column src: is of use only with references"),
        ("one", "plain files are compared with references; name them with --reference"),
        ("one --reference ref", "bleu: needs the target language; .* --task .* --tokenizer"),
        ("one --reference ref --metric language", "language: needs the target language; .* --task"),
        ("one --reference ref --source src --metric chrf --by length", "groups by length need .* --task"),
        ("one --reference ref --task German", "a language pair must be SRC-TGT"),
        (
            "one --reference sacrebleu:wmt99 --task en-de",
            "--reference sacrebleu:wmt99: sacreBLEU has no such",
        ),
        (
            "one --reference sacrebleu:wmt19",
            "--reference sacrebleu:wmt19: needs its language pair; .* --task",
        ),
        (
            "one --reference sacrebleu:wmt20 --task en-de",
            "--reference sacrebleu:wmt20: .* yet; `sacrebleu -t",
        ),
        ("one --reference sacrebleu:wmt19 ref --task en-de", "has its own references"),
        ("empty --reference ref", "empty: holds neither runs nor files"),
        ("ours=outputs --reference ref", "outputs: holds 2 files, so one name"),
        ("ours=table.tsv --column one,two --reference ref", "--column: names 2 systems, so 'ours'"),
        ("wmt24 --task en-fr", "wmt24: has no submissions of --task en-fr; its pairs are en-de"),
        ("wmt24 wmt24/system-outputs", "wmt24/system-outputs: only one folder"),
        ("ours=wmt24", "ours=wmt24: the systems of a folder in WMT's layout have their names"),
        ("one=two wmt24 --task en-de", "2 systems are called 'one'"),
        ("missing --reference ref", "missing: no such file or run; its folder holds bare.txt, .* more."),
        (
            "one --reference missing --task en-de",
            "missing: no such file; its folder holds bare.txt, .* more.",
        ),
        ("one --reference empty --task en-de", "empty: must be a file, but is a folder."),
        ("one --reference gaps --task en-de", "gaps:2: must have a reference, but is blank"),
        ("lists.jsonl --reference ref", r"lists.jsonl:1: must be a JSON object, but is \[1, 2\]"),
        ("list.json --reference ref", "list.json: must be JSON lines, an object on every line"),
        ("one --reference sacrebleu: --task en-de", "--reference sacrebleu:: sacreBLEU has no such test set"),
        ("wmt24 --testset wmt25", "wmt24: has no --testset wmt25; its test sets are wmt24"),
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


def test_one_reference_is_not_taken_for_several_pairs(command_line: CommandLine, folder: Path) -> None:
    write(folder / "wmt24" / "system-outputs" / "en-fr" / "three.txt", GERMAN.hypotheses[:SENTENCES])
    for command in ("wmt24 --reference ref", "one wmt24"):
        done = command_line.run("compare", *command.split())
        assert done.status == 2
        assert "is of one task, and wmt24 has 2; name it with --task" in done.stderr
