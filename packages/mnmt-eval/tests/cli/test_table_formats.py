"""The same numbers in every format of tables."""

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

HOSTILE = "a_b & 50% {x} | *y* #1 <z>"


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    good = write(tmp_path / "good", [*GERMAN.references[0][:6]] * 4)
    one, two = (
        write(tmp_path / n, [*t[:6]] * 4) for n, t in (("one", GERMAN.hypotheses), ("two", GERMAN.others))
    )
    ref = write(tmp_path / "ref", [*GERMAN.references[0][:6]] * 4)
    return [f"{HOSTILE}={one}", str(two), f"best={good}", "--reference", str(ref), "--task", "en-de"]


def printed(command_line: CommandLine, arguments: list[str], *options: str) -> str:
    done = command_line.run("compare", *arguments, *options)
    assert done.status == 0, done.stderr
    return done.stdout.decode()


def systems(command_line: CommandLine, arguments: list[str]) -> list[tuple[str, dict[str, Any]]]:
    (comparison,) = json.loads(printed(command_line, arguments, "--json"))["comparisons"]
    return [(each["metric"], system) for each in comparison["metrics"] for system in each["systems"]]


def test_csv_has_all_digits_of_the_json(command_line: CommandLine, arguments: list[str]) -> None:
    rows = list(csv.DictReader(printed(command_line, arguments, "--format", "csv").splitlines()))
    by_system = {(row["metric"], row["system"]): row for row in rows}
    expected = systems(command_line, arguments)
    assert len(rows) == len(expected) == 6
    for metric, system in expected:
        row, against = by_system[metric, system["system"]], system["against_baseline"]
        assert [float(row[name]) for name in ("value", "lower", "upper")] == [
            system["value"],
            *system["interval"],
        ]
        if against is None:
            assert row["difference"] == row["corrected_p_value"] == ""
        else:
            assert float(row["corrected_p_value"]) == against["corrected_p_value"]
            assert int(row["wins"]) == against["wins"]


@pytest.mark.parametrize(
    ("form", "bold"), [("markdown", r"\*\*([\d.]+)\*\*"), ("latex", r"\\textbf\{([\d.]+)\}")]
)
def test_the_best_ranks_are_bold(
    command_line: CommandLine, arguments: list[str], form: str, bold: str
) -> None:
    table = printed(command_line, arguments, "--format", form)
    best = [
        f"{system['value']:.2f}" for _, system in systems(command_line, arguments) if system["rank"][0] == 1
    ]
    assert sorted(re.findall(bold, table)) == sorted(best * 2)  # in the table of all metrics, and in its own


def test_markdown_keeps_names_as_they_are(command_line: CommandLine, arguments: list[str]) -> None:
    rows = [
        re.split(r"(?<!\\)\|", line)[1:-1]
        for line in printed(command_line, arguments, "--format", "markdown").splitlines()
        if line.startswith("| ")
    ]
    assert {len(row) for row in rows} == {3, 6}
    names = {re.sub(r"\\(.)", r"\1", cell.strip()) for row in rows for cell in row[:2]}
    assert f"{HOSTILE} (baseline)" in names


def test_latex_escapes_what_it_would_read_as_commands(
    command_line: CommandLine, arguments: list[str]
) -> None:
    lines = printed(command_line, arguments, "--format", "latex").splitlines()
    rows = [line for line in lines if "baseline)" in line and not line.startswith("%")]
    assert len(rows) == 3
    for row in rows:
        assert r"a\_b \& 50\% \{x\} $|$ *y* \#1 $<$z$>$ (baseline)" in row
    widths = [len(re.search(r"\{@\{\}(l+)@\{\}\}", line)[1]) for line in lines if "begin{tabular}" in line]
    tables = "\n".join(lines).split(r"\begin{tabular}")[1:]
    for width, table in zip(widths, tables, strict=True):
        body = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {width - 1}
