"""The pages that tests open in a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser_pages import browser, visit
from text_files import write

from mnmt_eval.compare import CompareConfig, name_systems, open_systems
from mnmt_eval.compare.config import score_files
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.report import ReportConfig, make_report, write_report
from mnmt_eval.runs import TextFiles

__all__ = ["browser", "pages", "visit"]

WORDS = np.array(
    ["der", "die", "Hund", "Katze", "Garten", "schläft", "sieht", "nicht", "heute", "Donaudampfschiff"]
)
ERRORS = {"a system with quite a long name": 0.3, "middle": 0.25, "good": 0.05}


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of three systems on two texts, and one system alone."""
    folder, rng = tmp_path_factory.mktemp("pages"), np.random.default_rng(1)
    texts = []
    for task in ("en-de", "de-en"):
        lines = [rng.choice(WORDS, size=rng.integers(1, 25)).tolist() for _ in range(120)]
        files = {"ref": write(folder / f"{task}.ref", [" ".join(line) for line in lines])}
        for name, share in ERRORS.items():
            outputs = [
                " ".join(str(rng.choice(WORDS)) if rng.random() < share else word for word in line)
                for line in lines
            ]
            outputs[7] = "" if name == "good" else outputs[7]
            files[name] = write(folder / f"{task}.{name}", outputs)
        systems = name_systems([f"{name}={files[name]}" for name in ERRORS])
        texts += open_systems(
            systems,
            testset="test",
            files=TextFiles(task=task, references=(files["ref"],), source=files["ref"]),
        )
    alone = open_systems(
        name_systems([f"good={folder / 'en-de.good'}"]),
        testset="test",
        files=TextFiles(task="en-de", references=(folder / "en-de.ref",)),
    )
    scores = write(folder / "scores.tsv", ["good\tmiddle", *["0.5\t0.25", "\t0.5"] * 60])
    (unreferenced,) = open_systems(
        name_systems([f"{name}={folder / f'en-de.{name}'}" for name in ("good", "middle")]),
        testset="test",
        files=TextFiles(references=()),
    )
    free = CompareConfig(metrics=MetricSet(names=()), scores=score_files([f"qe={scores}"]))
    config = ReportConfig(comparison=CompareConfig(metrics=MetricSet(names=("chrf", "ter"))))
    grouped = replace(config, comparison=replace(config.comparison, grouping="eighths"))
    return {
        "three": write_report(make_report(texts, grouped), folder / "three"),
        "reference-free": write_report(
            make_report([unreferenced], ReportConfig(comparison=free)), folder / "free"
        ),
        "one": write_report(make_report(alone, config), folder / "one"),
    }
