"""Whole documents are drawn and exchanged, as if their lines were one."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import CommandLine
from sacrebleu.metrics.chrf import CHRF
from text_files import write

WORDS = ["der", "die", "Hund", "Katze", "sieht", "heute", "nicht"]
SIZES = {"a": 1, "b": 7, "c": 3, "d": 2, "e": 9}
DOCUMENTS = [name for name, size in SIZES.items() for _ in range(size)]


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    sides = {"ref": [rng.choice(WORDS, size=6).tolist() for _ in DOCUMENTS]}
    for name, share in (("one", 0.5), ("two", 0.3)):
        sides[name] = [[w if rng.random() > share else "x" for w in line] for line in sides["ref"]]
    lines = {name: [" ".join(line) for line in side] for name, side in sides.items()}
    for name, text in {**lines, "docs": DOCUMENTS}.items():
        write(tmp_path / name, text)
    return lines


def compared(command_line: CommandLine, *options: str) -> tuple[dict[str, Any], list[str]]:
    arguments = ("one", "two", "--reference", "ref", "--task", "en-de", "--metric", "chrf", *options)
    done = command_line.run("compare", *arguments, "--json")
    assert done.status == 0, done.stderr
    document = json.loads(done.stdout)
    (comparison,) = document["comparisons"]
    return comparison, document["remarks"]


def score(lines: list[str], references: list[str]) -> float:
    return float(CHRF().corpus_score(lines, [references]).score)


def test_p_is_the_share_of_all_exchanges_of_documents(
    command_line: CommandLine, texts: dict[str, list[str]]
) -> None:
    comparison, remarks = compared(command_line, "--documents", "docs")
    (pair,) = comparison["metrics"][0]["pairs"]
    gaps = []
    for keeps in product([True, False], repeat=len(SIZES)):
        keeps_document = dict(zip(SIZES, keeps, strict=True))
        sides = [
            (one, two) if keeps_document[name] else (two, one)
            for name, one, two in zip(DOCUMENTS, texts["one"], texts["two"], strict=True)
        ]
        one, two = (list(side) for side in zip(*sides, strict=True))
        gaps.append(score(two, texts["ref"]) - score(one, texts["ref"]))
    expected = np.mean(np.abs(gaps) >= abs(gaps[0]) - 1e-9)
    assert pair["difference"] == pytest.approx(gaps[0])
    assert pair["p_value"] == pytest.approx(expected)
    assert "|ar:exact|unit:document|" in pair["signature"]
    assert comparison["documents"] == 5
    assert remarks == ["test en-de: has 5 documents, so no p is below 0.062, and few differences show"]


def test_intervals_are_of_resampled_documents(command_line: CommandLine, texts: dict[str, list[str]]) -> None:
    comparison, _ = compared(command_line, "--documents", "docs", "--samples", "80")
    draws = np.random.default_rng(12345).choice(5, size=(80, 5), replace=True)
    lines = {
        place: [i for i, name in enumerate(DOCUMENTS) if name == each] for place, each in enumerate(SIZES)
    }
    values = []
    for draw in draws:
        rows = [row for place in draw for row in lines[place]]
        values.append(score([texts["one"][row] for row in rows], [texts["ref"][row] for row in rows]))
    system = comparison["metrics"][0]["systems"][0]
    assert system["interval"] == pytest.approx([sorted(values)[2], sorted(values)[-3]])
    assert system["value"] == score(texts["one"], texts["ref"])


def test_a_sentence_a_document_changes_nothing_but_the_signature(
    command_line: CommandLine, texts: dict[str, list[str]], tmp_path: Path
) -> None:
    write(tmp_path / "each", [f"{number:03}" for number in range(len(DOCUMENTS))])
    alone, _ = compared(command_line, "--documents", "each")
    plain, _ = compared(command_line)
    text = json.dumps(alone).replace("|unit:document", "").replace('"documents": 22', '"documents": 0')
    assert json.loads(text) == plain


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a"], "docs: must name the documents of 22 sentences, one a line, but has 1."),
        (["a"] * 21 + [""], "docs:22: must name the document of this sentence, but is blank."),
    ],
)
def test_a_mistake_is_one_line(
    command_line: CommandLine, texts: dict[str, list[str]], tmp_path: Path, lines: list[str], message: str
) -> None:
    write(tmp_path / "docs", lines)
    arguments = ("one", "two", "--reference", "ref", "--task", "en-de", "--documents", "docs")
    done = command_line.run("compare", *arguments)
    assert (done.status, done.stderr) == (2, f"mnmt-eval: {message}\n")
