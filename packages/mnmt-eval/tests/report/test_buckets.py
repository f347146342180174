from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from mnmt_eval.compare import TranslatedText, name_systems, open_systems
from mnmt_eval.compare.measurements import measure_systems
from mnmt_eval.metrics import metric
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.report.buckets import frequency_buckets, length_buckets
from mnmt_eval.runs import TextFiles


def translated(
    folder: Path, references: list[str], outputs: Mapping[str, list[str]], *, task: str = "en-de"
) -> TranslatedText:
    for name, lines in {"ref": references, **outputs}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = TextFiles(task=task, references=(folder / "ref",))
    (text,) = open_systems(
        name_systems([str(folder / name) for name in outputs]), testset="test", files=files
    )
    return text


def test_words_are_in_buckets_of_their_frequency_in_the_references(tmp_path: Path) -> None:
    references = ["der Hund der Hund", "der Hund", "der der Kater"]
    text = translated(tmp_path, references, {"one": ["der Hund", "der neue Hund", "der der Kater Kater"]})
    result = frequency_buckets(text, np.array([0, 2]))
    counts = {bucket.name: (bucket.count, bucket.values[0]) for bucket in result.buckets if bucket.count}
    assert counts == {
        "once": (1, pytest.approx(200 * 1 / (1 + 2))),  # Kater: once right, and once too often
        "2–4 times": (3, pytest.approx(200 * 2 / (3 + 2))),  # Hund
        "5–9 times": (5, pytest.approx(200 * 4 / (5 + 4))),  # der
    }
    assert result.members == [[1, 2], [0, 2]]


def test_words_of_scripts_without_spaces_are_characters(tmp_path: Path) -> None:
    text = translated(tmp_path, ["打开文件", "打开 File 菜单"], {"one": ["打开", "文"]}, task="en-zh")
    result = frequency_buckets(text, np.array([0, 1]))
    assert [bucket.count for bucket in result.buckets[:2]] == [5, 4]
    assert [bucket.values[0] for bucket in result.buckets[:2]] == [0, pytest.approx(200 * 2 / (4 + 2))]


def test_lengths_are_scored_as_test_sets_of_their_own(tmp_path: Path) -> None:
    references = ["ein Hund", "ein Wort " * 8, "eine Katze"]
    text = translated(tmp_path, references, {"one": ["ein Hund", "ein Wort", "Katze"]})
    (measurement,) = measure_systems(text, MetricSet(names=("chrf",)))
    result = length_buckets(text.text, measurement, np.array([1, 2]))
    short = metric("chrf", target="de").score(["ein Hund", "Katze"], [["ein Hund", "eine Katze"]])
    assert [(bucket.name, bucket.count) for bucket in result.buckets] == [("0-9", 2), ("10-19", 1)]
    assert result.buckets[0].values == [short.value]
    assert result.members == [[1], [0]]
    assert result.title == "Length of the reference"
