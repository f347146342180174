from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine
from text_files import write

TABLE = (
    "1\t-0.5\tja\n1\t-0.6\tdas rote Haus\n1\t-0.7\tdas rote Haus dort\n"
    "1\t-0.8\tein rotes Haus dort\n2\t0.0\t\n3\t-0.9\tnein\n"
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "n-best.tsv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def lines_of(command_line: CommandLine, *arguments: str | Path) -> list[str]:
    done = command_line.run("rerank", *arguments)
    assert (done.status, done.stderr) == (0, "")
    return done.stdout.decode().removesuffix("\n").split("\n")


def test_a_line_for_each_source_in_two_forms(command_line: CommandLine, table: Path) -> None:
    texts = lines_of(command_line, table)
    assert texts == ["das rote Haus dort", "", "nein"]
    records = [json.loads(line) for line in lines_of(command_line, table, "--json")]
    assert [record["text"] for record in records] == texts
    assert [record["choice"] for record in records] == [3, 1, 1]
    assert all(record["value"] == max(record["values"]) for record in records)
    assert records[0]["judge"].startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0")


def test_samples_stand_in_for_references(command_line: CommandLine, table: Path, tmp_path: Path) -> None:
    samples = tmp_path / "samples.tsv"
    samples.write_text("1\t0\tja\n1\t0\tja!\n2\t0\t\n3\t0\tnein\n", encoding="utf-8")
    assert lines_of(command_line, table, "--samples", samples)[0] == "ja"


@pytest.mark.parametrize(
    ("metric", "best"),
    [
        (("bleu", "--task", "en-de"), "das rote Haus dort"),
        (("chrf++",), "das rote Haus dort"),
        (("ter",), "ja"),  # four words are four times as many edits as the one word of the reference
    ],
)
def test_other_metrics_choose_too(
    command_line: CommandLine, table: Path, metric: tuple[str, ...], best: str
) -> None:
    assert lines_of(command_line, table, "--metric", *metric)[0] == best


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--metric", "bleu"), "bleu: needs the target language"),
        (("--metric", "rouge"), "`--metric` must be one of bleu, chrf, chrf++, ter, bleurt, but"),
        (("--metric", "language"), "bleurt, but is 'language'."),
        (("--samples", "{tmp}/few"), "few: must have samples for each of 3 sources, but has 1."),
        (("--samples", "{tmp}"), ": is a folder; name a file in it."),
    ],
)
def test_a_mistake_is_one_line(
    command_line: CommandLine, table: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    write(tmp_path / "few", ["1\t-1\tHaus"])
    done = command_line.run("rerank", table, *(option.format(tmp=tmp_path) for option in options))
    assert (done.status, done.stdout) == (2, b"")
    (line,) = done.stderr.splitlines()
    assert message in line


def test_the_column_of_scores_is_not_taken_for_text(command_line: CommandLine, tmp_path: Path) -> None:
    rows = [
        *("0\tDo it because I say so.\t-0.45", "0\tDo it because I say it.\t-0.47", "0\t\t-1.9"),
        *("1\tHello there my friend.\t-0.3", "1\tHello there my friend.\t-0.3", "1\tHi you.\t-0.9"),
    ]
    table = write(tmp_path / "nb.tsv", rows)
    done = command_line.run("rerank", table)
    assert (done.status, done.stdout) == (2, b"")
    assert done.stderr.endswith("name that of the text with --column, as in --column 2.\n")
    assert lines_of(command_line, table, "--column", "2") == [
        "Do it because I say so.",
        "Hello there my friend.",
    ]


def test_marks_of_subwords_are_a_remark(command_line: CommandLine, tmp_path: Path) -> None:
    done = command_line.run(
        "rerank", write(tmp_path / "list", ["0 ||| das ro@@ te Haus", "0 ||| das ro@@ te"])
    )
    assert (done.status, done.stdout.decode()) == (0, "das ro@@ te Haus\n")
    assert (
        done.stderr
        == f"{tmp_path}/list: 2 of 2 lines have BPE's @@, first line 1; join the pieces of words\n"
    )
