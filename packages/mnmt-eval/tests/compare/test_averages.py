from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine

from mnmt_eval.compare import (
    CompareConfig,
    Comparison,
    TranslatedText,
    compare_systems,
    name_systems,
    open_systems,
)
from mnmt_eval.compare.averages import average_directions
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.runs import TextFiles


def translated(
    folder: Path, task: str, reference: list[str], outputs: dict[str, list[str]]
) -> TranslatedText:
    files = {name: folder / f"{task}.{name}" for name in ("ref", *outputs)}
    for name, lines in {"ref": reference, **outputs}.items():
        files[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    systems = name_systems([f"{name}={files[name]}" for name in outputs])
    (text,) = open_systems(systems, testset="test", files=TextFiles(task=task, references=(files["ref"],)))
    return text


def test_means_out_of_english_and_into_it_are_apart(tmp_path: Path) -> None:
    config = CompareConfig(metrics=MetricSet(names=("chrf",)), samples=20, permutations=20)
    right, wrong = ["der Hund", "die Katze"], ["x", "y"]
    outputs = {
        "en-de": {"one": right, "two": wrong},
        "en-fr": {"one": wrong, "two": wrong},
        "de-en": {"one": wrong, "two": right},
    }
    comparisons = [
        compare_systems(translated(tmp_path, task, right, of_task), config)
        for task, of_task in outputs.items()
    ]
    averages = average_directions(comparisons)
    means = [
        (each.direction, each.tasks, {system.system: system.mean.value for system in each.systems})
        for each in averages
    ]
    assert means == [
        ("En→XX", ("en-de", "en-fr"), {"one": 50.0, "two": 0.0}),
        ("XX→En", ("de-en",), {"one": 0.0, "two": 100.0}),
        ("all", ("en-de", "en-fr", "de-en"), {"one": pytest.approx(100 / 3), "two": pytest.approx(100 / 3)}),
    ]
    assert averages[0].systems[0].difference is None
    difference = averages[0].systems[1].difference
    assert difference is not None
    assert (difference.lower, difference.value, difference.upper) == (-50, -50, -50)


def test_the_interval_of_a_mean_narrows_with_the_tasks(tmp_path: Path) -> None:
    """Of one text twice it is that of the text; of texts that have nothing in common it is narrower."""
    rng = np.random.default_rng(1)
    config = CompareConfig(metrics=MetricSet(names=("chrf",)), permutations=20)
    reference = ["der Hund schläft"] * 200

    def compared(task: str, is_right: np.ndarray) -> Comparison:
        outputs = {"one": ["x"] * 200, "two": [reference[0] if right else "x" for right in is_right]}
        return compare_systems(translated(tmp_path, task, reference, outputs), config)

    rights = [rng.random(200) < 0.5 for _ in range(4)]
    alone = compared("en-de", rights[0])
    twice = average_directions([alone, compared("en-fr", rights[0])])[0].systems[1].difference
    four = [
        compared(f"en-{task}", right) for task, right in zip(("aa", "bb", "cc", "dd"), rights, strict=True)
    ]
    spread = average_directions(four)[0].systems[1].difference
    test = alone.metrics[0].scores[1].test
    assert test is not None
    assert test.interval is not None
    assert twice is not None
    assert spread is not None
    assert (twice.lower, twice.upper) == (test.interval.lower, test.interval.upper)
    half = (test.interval.upper - test.interval.lower) / 2
    assert spread.upper - spread.lower == pytest.approx(half, rel=0.2)


def test_runs_of_several_tasks_are_averaged_below_their_tables(
    command_line: CommandLine, scored_run: Path
) -> None:
    shutil.copytree(scored_run, scored_run.with_name("other"))
    done = command_line.run("compare", scored_run.parent, "--metric", "chrf", "--json")
    document = json.loads(done.stdout)
    values = [c["metrics"][0]["systems"][0]["value"] for c in document["comparisons"]]
    (average,) = document["averages"]
    assert (average["direction"], average["tasks"]) == ("all", ["xx-aa", "xx-bb"])
    other, tiny = average["systems"]
    assert other["mean"]["value"] == pytest.approx(sum(values) / 2)
    assert (other["difference"], tiny["difference"]["value"]) == (None, 0)
    table = command_line.run("compare", scored_run.parent, "--metric", "chrf").stdout.decode().splitlines()
    assert table[-3].startswith("mean over tasks")
    assert re.split(r"  +", table[-2])[:3] == ["all (2)", "other", "chrf"]
    assert re.split(r"  +", table[-2])[3].startswith(f"{sum(values) / 2:.2f} [")
