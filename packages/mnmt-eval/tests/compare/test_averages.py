from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import CommandLine

from mnmt_eval.compare import CompareConfig, TranslatedText, compare_systems, name_systems, open_systems
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
    assert [(each.direction, each.tasks, dict(each.values)) for each in averages] == [
        ("En→XX", ("en-de", "en-fr"), {"one": 50.0, "two": 0.0}),
        ("XX→En", ("de-en",), {"one": 0.0, "two": 100.0}),
        ("all", ("en-de", "en-fr", "de-en"), {"one": pytest.approx(100 / 3), "two": pytest.approx(100 / 3)}),
    ]


def test_runs_of_several_tasks_are_averaged_below_their_tables(
    command_line: CommandLine, scored_run: Path
) -> None:
    shutil.copytree(scored_run, scored_run.with_name("other"))
    done = command_line.run("compare", scored_run.parent, "--metric", "chrf", "--json")
    document = json.loads(done.stdout)
    values = [c["metrics"][0]["systems"][0]["value"] for c in document["comparisons"]]
    (average,) = document["averages"]
    assert (average["direction"], average["tasks"]) == ("all", ["xx-aa", "xx-bb"])
    assert average["values"]["other"] == pytest.approx(sum(values) / 2)
    table = command_line.run("compare", scored_run.parent, "--metric", "chrf").stdout.decode().splitlines()
    assert table[-3].endswith("chrf all (2)")
    assert table[-2].split() == ["other", f"{sum(values) / 2:.2f}"]
