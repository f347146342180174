"""Pairwise accuracy is what counting all pairs gives."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine
from text_files import write

NAMES = ("a", "b", "c", "d")


def accuracy(metric: np.ndarray, human: np.ndarray) -> tuple[float, int]:
    """Of the pairs that people part, one by one; a tie of the metric counts half."""
    alike = [
        0.5 if metric[i] == metric[j] else float((metric[i] < metric[j]) == (human[i] < human[j]))
        for i, j in combinations(range(len(human)), 2)
        if human[i] != human[j]
    ]
    return sum(alike), len(alike)


@pytest.fixture
def scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    human = rng.integers(0, 5, size=(40, 4)) + np.array([0, 1, 0, 2])
    tables = {"human": human, "good": human + rng.integers(-1, 2, size=human.shape), "metricx": -human * 1.0}
    for name in NAMES:
        write(tmp_path / name, [f"{name} {number}" for number in range(40)])
    for name, table in tables.items():
        write(tmp_path / f"{name}.tsv", ["\t".join(NAMES), *("\t".join(map(str, row)) for row in table)])
    return tables


def test_accuracies_are_counted_pair_by_pair(
    command_line: CommandLine, scores: dict[str, np.ndarray]
) -> None:
    files = [each for name in scores for each in ("--scores", f"{name}.tsv")]
    arguments = ("compare", *NAMES, *files, "--human", "human", "--permutations", "50")
    document = json.loads(command_line.run(*arguments, "--json").stdout)
    good, metricx = document["comparisons"][0]["agreements"]
    alike, pairs = accuracy(scores["good"].mean(axis=0), scores["human"].mean(axis=0))
    assert (good["systems"]["value"], good["system_pairs"]) == (100 * alike / pairs, pairs)
    counted = [accuracy(*rows) for rows in zip(scores["good"], scores["human"], strict=True)]
    alike, pairs = np.sum(counted, axis=0)
    assert good["sentences"]["value"] == pytest.approx(100 * alike / pairs)
    assert good["sentence_pairs"] == pairs
    assert good["sentences"]["lower"] < good["sentences"]["value"] < good["sentences"]["upper"]
    assert [metricx[level][end] for level in ("systems", "sentences") for end in ("lower", "upper")] == [
        100
    ] * 4
    table = command_line.run(*arguments).stdout.decode()
    assert "ordered as by human" in table
    assert f"{good['sentences']['value']:.1f} [{good['sentences']['lower']:.1f}, " in table


def test_a_mistake_is_one_line(command_line: CommandLine, scores: dict[str, np.ndarray]) -> None:
    for arguments, message in {
        (
            "a",
            "b",
            "--human",
            "people",
        ): "`--human` must be one of human, but is 'people'; see --scores.",
        ("a", "--human", "human"): "`--human` must part some systems, but human parts none.",
    }.items():
        done = command_line.run("compare", *arguments, "--scores", "human.tsv")
        assert (done.status, done.stderr) == (2, f"mnmt-eval: {message}\n")
