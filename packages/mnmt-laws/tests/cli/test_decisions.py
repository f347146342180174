"""Commands that answer questions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


def test_frontier_prints_json_and_draws(run: Run, csv: Path, tmp_path: Path) -> None:
    command = ("frontier", csv, "--size", "1e6", "--refits", 3)
    status, out, _ = run(*command, "--json", "--figure", tmp_path / "frontier.png")
    document = json.loads(out)
    assert status == 0
    assert list(document) == ["size", "tokens", "law", "tasks", "efficient", "warnings"]
    lengths = {len(values) for task in document["tasks"].values() for values in task.values()}
    assert lengths == {len(document["efficient"])}
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")


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


def test_design_proposes_runs(run: Run, csv: Path, tmp_path: Path) -> None:
    command = ("design", csv, "--quantity", "weight:en-de@size=1e6", "--refits", 12)
    status, out, _ = run(*command, "--json", "--runs", 2, "--figure", tmp_path / "design.svg")
    document = json.loads(out)
    assert status == 0
    assert len(document["runs"]) == 2
    assert document["runs"][1]["std"] < document["runs"][0]["std"] < document["std"]
    assert (tmp_path / "design.svg").is_file()
    assert "standard deviation now" in run(*command)[1]
