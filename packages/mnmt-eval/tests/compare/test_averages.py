from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine
from sacrebleu.metrics.chrf import CHRF
from text_files import write

from mnmt_eval.compare import (
    CompareConfig,
    TextComparison,
    TranslatedText,
    compare_systems,
    name_systems,
    open_systems,
)
from mnmt_eval.compare.averages import average_directions
from mnmt_eval.metrics import holm
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.runs import TextFiles


def translated(
    folder: Path, task: str, reference: list[str], outputs: dict[str, list[str]]
) -> TranslatedText:
    files = {name: folder / f"{task}.{name}" for name in ("ref", *outputs)}
    for name, lines in {"ref": reference, **outputs}.items():
        write(files[name], lines)
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
    tested = [each.systems[1].difference for each in averages]
    p_values = [each.p_value for each in tested if each]
    assert [each.corrected_p_value for each in tested if each] == holm(p_values)


def rescored(reference: list[str], one: list[str], two: list[str], stays: np.ndarray) -> float:
    """What sacreBLEU gives the second system more than the first, where some rows are exchanged."""
    pairs = zip(one, two, stays, strict=True)
    first, second = zip(*((a, b) if stay else (b, a) for a, b, stay in pairs), strict=True)
    score = CHRF().corpus_score
    return float(score(second, [reference]).score - score(first, [reference]).score)


def test_a_mean_is_tested_by_the_mean_of_each_draw(tmp_path: Path) -> None:
    """The outputs of two systems are exchanged, and sacreBLEU scores them anew."""
    rng = np.random.default_rng(3)
    words, draws, sizes = ["der", "Hund", "sieht", "die", "Katze"], 40, {"en-de": 5, "en-fr": 4}
    config = CompareConfig(metrics=MetricSet(names=("chrf",)), samples=draws, permutations=draws)
    comparisons, differences = [], []
    for task, size in sizes.items():
        reference, one, two = ([" ".join(rng.choice(words, size=6)) for _ in range(size)] for _ in range(3))
        text = translated(tmp_path, task, reference, {"one": one, "two": two})
        comparisons.append(compare_systems(text, config))

        drawn = np.random.default_rng(config.seed).integers(2, size=(draws, size), dtype=bool)
        of_draws = [np.ones(size, dtype=bool), *drawn]
        differences.append([rescored(reference, one, two, stays) for stays in of_draws])
    means = np.abs(np.mean(differences, axis=0))
    (average,) = average_directions(comparisons)
    result = average.systems[1].difference
    assert result is not None
    assert abs(result.value) == pytest.approx(means[0])
    assert result.p_value == (1 + np.sum(means[1:] >= means[0] - 1e-9)) / (1 + draws)


def test_texts_that_are_no_different_tasks_have_no_mean(tmp_path: Path) -> None:
    config = CompareConfig(metrics=MetricSet(names=("chrf",)), samples=20, permutations=20)

    def compared(task: str, *names: str) -> TextComparison:
        outputs = {name: ["a", "b"] for name in names}
        return compare_systems(translated(tmp_path, task, ["a", "b"], outputs), config)

    first, second = compared("en-de", "one", "two"), compared("en-fr", "two", "one")
    for comparisons in ([first], [first, first], [first, compared("", "one", "two")]):
        assert average_directions(comparisons) == ()
    (average,) = average_directions([first, second])
    assert [system.difference for system in average.systems] == [None, None]  # of other baselines


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
    assert table[-4].startswith("mean over tasks")
    assert re.split(r"  +", table[-3])[:3] == ["all (2)", "other", "chrf"]
    assert re.split(r"  +", table[-3])[3].startswith(f"{sum(values) / 2:.2f} [")
    assert re.split(r"  +", table[-2])[-1] == "1.0000"
    assert table[-1] == "p of a paired permutation test; * p < 0.05"
