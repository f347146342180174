"""Commands that answer questions."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

Run = Callable[..., tuple[int, str, str]]


def test_frontier_prints_json(run: Run, csv: Path) -> None:
    status, out, _ = run("frontier", csv, "--size", "1e6", "--refits", 3, "--json")
    document = json.loads(out)
    assert status == 0
    assert list(document) == ["size", "tokens", "law", "tasks", "efficient", "warnings"]
    lengths = {len(values) for task in document["tasks"].values() for values in task.values()}
    assert lengths == {len(document["efficient"])}


def test_recommend_gives_weights_that_sum_to_one(run: Run, csv: Path) -> None:
    command = ("recommend", csv, "--size", "1e5", "--refits", 3)
    _, out, _ = run(*command, "--prefer", "en-de:2,en-zh:1", "--json")
    assert sum(json.loads(out)["weights"].values()) == pytest.approx(1)
    status, out, _ = run(*command)
    assert status == 0
    mixture = dict(item.split(":") for item in out.splitlines()[0].split(","))
    assert sum(map(float, mixture.values())) == pytest.approx(1, abs=1e-12)
    assert out.splitlines()[1].startswith("en-de: weight 0.")


def test_recommend_answers_targets(run: Run, csv: Path) -> None:
    command = ("recommend", csv, "--targets", "en-de:0.3,en-zh:0.4", "--refits", 3)
    status, out, _ = run(*command, "--json")
    smallest = json.loads(out)
    assert status == 0
    assert smallest["size"] > 0
    command = (*command, "--size", 2 * smallest["size"])
    assert json.loads(run(*command, "--json")[1])["feasible"] is True
    assert "met with probability" in run(*command)[1]
    _, out, _ = run("recommend", csv, "--targets", "en-de:0.01", "--refits", 0)
    assert out.startswith("infeasible: L∞ of en-de (")


def test_design_proposes_runs(run: Run, csv: Path) -> None:
    command = ("design", csv, "--quantity", "weight:en-de@size=1e6", "--refits", 12)
    status, out, _ = run(*command, "--json", "--runs", 2)
    document = json.loads(out)
    assert status == 0
    assert len(document["runs"]) == 2
    assert document["runs"][1]["std"] < document["runs"][0]["std"] < document["std"]
    assert "standard deviation now" in run(*command)[1]


def test_recommend_prints_a_study(run: Run, csv: Path, tmp_path: Path) -> None:
    base = tmp_path / "study.toml"
    base.write_text('name = "tiny"\n')
    status, out, _ = run("recommend", csv, "--size", "1e6", "--refits", 3, "--study", base)
    sweep = tomllib.loads(out)["sweep"]
    assert status == 0
    assert sum(sweep["fit"]["mixtures"][0].values()) == pytest.approx(1)
    assert sweep["fit"]["sizes"] == list(sweep["sizes"])


def test_an_extrapolated_number_has_its_back_test_beside_it(run: Run, csv: Path) -> None:
    _, far, _ = run("recommend", csv, "--size", "1e7", "--refits", 3)
    assert "back-test: Fitted without the largest size" in far
    _, near, _ = run("recommend", csv, "--size", "1e5", "--refits", 3)
    assert "back-test" not in near


def test_design_writes_its_studies(run: Run, csv: Path, tmp_path: Path) -> None:
    command = ("design", csv, "--quantity", "weight:en-de@size=1e6", "--refits", 12)
    _, out, _ = run(*command, "-o", tmp_path / "study.toml")
    paths = [Path(line) for line in out.splitlines() if line.endswith(".toml")]
    assert paths[0] == tmp_path / "study.toml"
    texts = [path.read_text("utf-8") for path in paths]
    assert sum(len(tomllib.loads(text)["sweep"]["fit"]["mixtures"]) for text in texts) >= 1
    assert "standard deviation now" in texts[0]


def test_a_budget_is_shared_between_size_and_length(run: Run, csv: Path, tmp_path: Path) -> None:
    table = pd.read_csv(csv)
    table = table[table["metric"] == "loss"]
    longer = [
        table.assign(
            tokens=tokens, run=table["run"] + f"-{tokens:g}", value=table["value"] + 30 * tokens**-0.4
        )
        for tokens in (1e6, 4e6, 1.6e7)
    ]
    lengths = pd.concat(longer)
    lengths.assign(flops=12 * lengths["size"] * lengths["tokens"]).to_csv(
        tmp_path / "lengths.csv", index=False
    )
    command = ("recommend", tmp_path / "lengths.csv", "--budget", "1e13", "--law", "length", "--refits", 3)
    answer = json.loads(run(*command, "--json")[1])
    assert "FLOPs are counted as 6 for each" in answer["warnings"][-1]
    assert "cost 12 to 12; in Python `flops_per_token_parameter`" in answer["warnings"][-1]
    assert 6 * answer["size"] * answer["tokens"] == pytest.approx(1e13)
    assert "training length: " in run(*command)[1]
    command = ("recommend", tmp_path / "lengths.csv", "--targets", "en-de:1,en-zh:1", "--refits", 0)
    assert json.loads(run(*command, "--json")[1])["law"] == "share-tied"


def test_models_of_one_mixture_cannot_say_what_another_would_do(run: Run, tmp_path: Path) -> None:
    sizes = (1e4, 1e5, 1e6)
    rows = [
        {"task": task, "size": size, "weight": 0.5, "value": 1 + size**-0.3}
        for task in "ab"
        for size in sizes
    ]
    pd.DataFrame(rows).assign(metric="loss").to_csv(tmp_path / "runs.csv", index=False)
    status, _, err = run("recommend", tmp_path / "runs.csv", "--size", "1e5")
    assert (status, err.count("\n")) == (2, 1)
    assert "all models here have one mixture" in err
