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
    status, out, _ = run("frontier", csv, "--law", "capacity", "--size", "1e6", "--refits", 10, "--json")
    document = json.loads(out)
    assert status == 0
    assert list(document) == ["size", "tokens", "law", "tasks", "sources", "efficient", "warnings"]
    lengths = {len(values) for task in document["tasks"].values() for values in task.values()}
    assert lengths == {len(document["efficient"])}


def test_a_budget_is_shared_between_size_and_length(run: Run, csv: Path, tmp_path: Path) -> None:
    table = pd.read_csv(csv)
    table = table[table["metric"].eq("loss") & table["weight"].isin([0.3, 0.5, 0.7])]
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
    command = ("recommend", tmp_path / "lengths.csv", "--budget", "1e13", "--law", "length", "--refits", 10)
    answer = json.loads(run(*command, "--json")[1])
    assert "FLOPs are counted as 6 for each" in answer["warnings"][-1]
    assert "cost 12 to 12; in Python `flops_per_token_parameter`" in answer["warnings"][-1]
    assert 6 * answer["size"] * answer["tokens"] == pytest.approx(1e13)


DESIGN = ("--law", "capacity", "--size", "1e6", "--refits", 20)


def test_design_proposes_runs_or_says_that_none_is_worth_its_flops(run: Run, csv: Path) -> None:
    status, out, _ = run("design", csv, *DESIGN, "--amount", "1e-6", "--runs", 2, "--json")
    document = json.loads(out)
    assert status == 0
    assert len(document["runs"]) == 2
    assert document["warnings"]
    assert document["runs"][1]["regret"] < document["runs"][0]["regret"] < document["regret"]
    status, out, _ = run("design", csv, *DESIGN, "--amount", 1)
    assert status == 0
    assert out.startswith("Nothing is worth training before a model of 1M parameters")


FEW = [(1e5, 0.3), (1e5, 0.7), (1e6, 0.3), (1e6, 0.7), (4e6, 0.5)]


@pytest.mark.parametrize("tasks", [("a", "b"), ("a",)])
def test_five_runs_have_advice_that_says_what_nothing_checks(
    run: Run, tmp_path: Path, tasks: tuple[str, ...]
) -> None:
    rows = [
        {
            "task": task,
            "size": size,
            "mixture": f"a:{p},b:{1 - p}",
            "value": 1 + 30 * (share**0.5 * size) ** -0.25,
        }
        for size, p in FEW
        for task, share in zip("ab", (p, 1 - p), strict=True)
        if task in tasks
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    options = (tmp_path / "runs.csv", "--law", "power-capacity", "--refits", 10)
    _, advice, doubts = run("recommend", *options)
    status, design, _ = run("design", *options, "--amount", 1)
    assert status == 0
    assert ("rests on the form of the laws alone (power-capacity)" in doubts) is (len(tasks) == 2)
    assert advice.startswith("a:0.5,b:0.5" if len(tasks) == 2 else "a:1")
    assert design.startswith(
        "By the laws alone, nothing is worth training" if len(tasks) == 2 else "There is no mixture to choose"
    )


def test_design_writes_its_studies(run: Run, csv: Path, tmp_path: Path) -> None:
    command = ("design", csv, *DESIGN, "--amount", "1e-6", "-o", tmp_path / "study.toml")
    _, out, _ = run(*command)
    paths = [Path(line) for line in out.splitlines() if line.endswith(".toml")]
    assert paths[0] == tmp_path / "study.toml"
    texts = [path.read_text("utf-8") for path in paths]
    assert sum(len(tomllib.loads(text)["sweep"]["fit"]["mixtures"]) for text in texts) >= 1
    assert "parameters, then " in texts[0]  # the table has neither tokens nor FLOPs
