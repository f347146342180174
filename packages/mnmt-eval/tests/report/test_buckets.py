from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mnmt_eval.compare import TranslatedText, name_systems, open_systems
from mnmt_eval.compare.measurements import measure_systems
from mnmt_eval.metrics import metric
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.report.buckets import length_buckets
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


def test_lengths_are_scored_as_test_sets_of_their_own(tmp_path: Path) -> None:
    references = ["ein Hund", "ein Wort " * 8, "eine Katze"]
    text = translated(tmp_path, references, {"one": ["ein Hund", "ein Wort", "Katze"]})
    (measurement,) = measure_systems(text, MetricSet(names=("chrf",)))
    result = length_buckets(text.text, measurement, np.array([1, 2]))
    short = metric("chrf", target="de").score(["ein Hund", "Katze"], [["ein Hund", "eine Katze"]])
    assert [(bucket.name, bucket.count) for bucket in result.buckets] == [("0-9", 2), ("10-19", 1)]
    assert result.buckets[0].values == [short.value]
    assert result.members == [1, 0]
    assert result.title == "Length of the reference"
