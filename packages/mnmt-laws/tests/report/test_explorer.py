"""The explorer says what the law predicts: its scripts, run by node, against Python."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import Perturbation, ResidualBootstrap, fit, recommend
from mnmt_laws.laws import LawName
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.explorer import explorer_data, grid_values

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
Analyse = Callable[..., Analysis]


@pytest.fixture(params=["loss", "chrf"])
def analysis(request: pytest.FixtureRequest) -> Analysis:
    """The analysis of a metric that falls with size, and of one that rises."""
    requested: Analysis = request.getfixturevalue(f"{request.param}_analysis")
    return requested


@pytest.fixture(scope="module")
def hopeless_analysis(losses: pd.DataFrame, analyse_table: Analyse) -> Analysis:
    """An analysis of sixteen values that hardly follow any law."""
    noise = np.random.default_rng(4).normal(0, 0.4, len(losses))
    return analyse_table(losses.assign(value=losses["value"] * np.exp(noise)))


def page_data(analysis: Analysis) -> dict[str, Any]:
    """What the page embeds, as its script reads it."""
    data = explorer_data(analysis)
    assert data is not None
    read: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
    for grid in read.get("grids", {}).values():
        grid["numbers"] = np.frombuffer(base64.b64decode(grid["numbers"]), "<f4").tolist()
    return read


def run_script(expression: str, data: object) -> Any:
    """The value of an expression in which `data` and the explorer's functions are known."""
    script = resources.files("mnmt_laws.report").joinpath("assets", "explorer.js").read_text(encoding="utf-8")
    program = f"{script}\nconst data = {json.dumps(data)};\nconsole.log(JSON.stringify({expression}));"
    ran = subprocess.run([NODE or "node", "-"], input=program, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def told(answers: list[list[dict[str, Any]]], task: int, *names: str) -> np.ndarray:
    """(places, names) what the page says of one task."""
    return np.array([[answer[task][name] for name in names] for answer in answers], float)


@needs_node
@pytest.mark.parametrize("which", ["loss_analysis", "chrf_analysis", "hopeless_analysis"])
def test_two_tasks_are_told_as_python_predicts(which: str, request: pytest.FixtureRequest) -> None:
    analysis: Analysis = request.getfixturevalue(which)
    data, rng = page_data(analysis), np.random.default_rng(0)
    low, high = data["size"]
    size, weight = np.exp(rng.uniform(np.log(low), np.log(10 * high), 60)), rng.uniform(0.002, 0.998, 60)
    states = [{"size": n, "weights": [p, 1 - p]} for n, p in zip(size, weight, strict=True)]
    answers = run_script("data.states.map((state) => predictions(data, state))", {**data, "states": states})
    expected = grid_values(analysis.law, {"size": size, "weight": weight})
    for number, task in enumerate(data["tasks"]):
        shown = told(answers, number, "value", "low", "high", "newLow", "newHigh")
        np.testing.assert_allclose(shown[:, 0], expected[task][:, 0], rtol=5e-5)  # less than is printed
        width = (expected[task][:, 2] - expected[task][:, 1])[:, None]
        near = np.abs(shown - expected[task]) <= 0.15 * width + 5e-5 * np.abs(expected[task])
        assert near[(expected[task] > 1e-3).all(axis=1)].all()


@needs_node
def test_lengths_are_told_as_python_predicts(length_analysis: Analysis) -> None:
    data, rng = page_data(length_analysis), np.random.default_rng(1)
    assert data["tokens"] == [1e6, 1.6e7]
    size, tokens = (
        np.exp(rng.uniform(np.log(low), np.log(10 * high), 40))
        for low, high in (data["size"], data["tokens"])
    )
    weight = rng.uniform(0.01, 0.99, 40)
    states = [
        {"size": n, "tokens": d, "weights": [p, 1 - p]} for n, d, p in zip(size, tokens, weight, strict=True)
    ]
    answers = run_script("data.states.map((state) => predictions(data, state))", {**data, "states": states})
    expected = grid_values(length_analysis.law, {"size": size, "weight": weight, "tokens": tokens})
    for number, task in enumerate(data["tasks"]):
        shown = told(answers, number, "value", "low", "high", "newLow", "newHigh")
        last_digit = 10 ** (np.floor(np.log10(expected[task][:, 0])) - 3)  # of the four that are printed
        assert (np.abs(shown[:, 0] - expected[task][:, 0]) < last_digit / 2).all()
        width = (expected[task][:, 2] - expected[task][:, 1])[:, None]
        near = np.abs(shown - expected[task]) <= 0.15 * width + 5e-5 * expected[task]
        assert near.mean() > 0.95  # a quantile of few refits has kinks, which no grid follows


@needs_node
def test_no_band_crosses_itself_on_hopeless_data(hopeless_analysis: Analysis) -> None:
    data = page_data(hopeless_analysis)
    weights = np.linspace(0.002, 0.998, 200).tolist()
    for size in (data["size"][0], 10 * data["size"][1]):
        states = [{"size": size, "weights": [p, 1 - p]} for p in weights]
        answers = run_script(
            "data.states.map((state) => predictions(data, state))", {**data, "states": states}
        )
        for task in (0, 1):
            ends = told(answers, task, "newLow", "low", "high", "newHigh")
            assert np.isfinite(ends).all()
            assert (np.diff(ends, axis=1) >= 0).all()


@needs_node
@pytest.mark.parametrize(
    "law",
    [
        "capacity", "linear-capacity", "simplex-capacity", "transfer-capacity", "mixture-limit",
        "mixture-additive", "shukor", "length", "length-full", "share-tied", "simplex-length-transfer",
        "transfer-share",
    ],
)  # fmt: skip
def test_three_tasks_are_told_as_python_predicts(
    law: LawName, three_analysis: Analysis, three_table: pd.DataFrame
) -> None:
    rng = np.random.default_rng(0)
    table = three_table.assign(tokens=rng.choice([1e6, 4e6, 1.6e7], len(three_table)), run="", mixture_id="")
    fitted = fit(table.drop(columns=["run", "mixture_id"]), law=law, uncertainty=ResidualBootstrap(refits=12))
    data = page_data(
        replace(three_analysis, law=fitted, observations=fitted.observations, recommendation=None)
    )
    mixture, size = {"aa": 0.5, "bb": 0.2, "cc": 0.3}, 3e5
    length = {"tokens": 4e7} if fitted.law.knows_length else {}
    state = {"size": size, "weights": list(mixture.values()), **length}
    answer = run_script("predictions(data, data.state)", {**data, "state": state})
    for row in answer:
        where: dict[str, Any] = {"task": row["task"], "size": size, "mixture": mixture, **length}
        assert row["value"] == pytest.approx(float(fitted.predict(**where)), rel=1e-9)
        ends = fitted.prediction_interval(**where)
        names = (("low", "law_lower"), ("high", "law_upper"), ("newLow", "lower"), ("newHigh", "upper"))
        for name, end in names:
            expected = float(getattr(ends, end))
            assert row[name] == (pytest.approx(expected, rel=1e-6) if np.isfinite(expected) else None)


@needs_node
def test_the_best_weights_are_those_that_python_recommends(analysis: Analysis) -> None:
    places = [(size, share) for size in (2e4, 1e6) for share in (0.2, 0.5, 0.7)]
    answers = run_script(
        "data.places.map(([size, share]) => bestWeights(data, { size }, share)[0])",
        {**page_data(analysis), "places": places},
    )
    for (size, share), weight in zip(places, answers, strict=True):
        advice = recommend(analysis.law, size=size, preference={"aa": share, "bb": 1 - share})
        assert weight == pytest.approx(advice.weights["aa"], abs=5e-3)  # the cost is flat there


@needs_node
def test_sizes_are_read_as_people_write_them() -> None:
    texts = ["1e9", "2.5B", "300k", " 1,000,000 ", "7 m", "1,500k", "many", "1,5M", ""]
    assert run_script("data.map(parseCount)", texts) == [1e9, 2.5e9, 3e5, 1e6, 7e6, 1.5e6, None, None, None]
    counts = [999, 16e4, 2.5e9, 3e12]
    assert run_script("data.map(formatCount)", counts) == ["999", "160K", "2.5B", "3T"]


@needs_node
def test_the_mixture_is_valid_in_a_study() -> None:
    data = {"tasks": ["en-de", 'odd "name".x', "en-zh"], "weights": [1 / 3, 1 / 3, 1 / 3]}
    text = run_script("mixtureToml(data, { size: 2e6, tokens: 3e9, weights: data.weights })", data)
    (mixture,) = tomllib.loads(text)["sweep"]["fit"]["mixtures"]
    assert list(mixture) == data["tasks"]
    assert sum(mixture.values()) == pytest.approx(1, abs=1e-12)


def test_one_task_has_no_mixture(one_task: pd.DataFrame, analyse_table: Analyse) -> None:
    alone = one_task[one_task["weight"].eq(1.0)]
    data = explorer_data(analyse_table(alone, uncertainty=Perturbation(refits=0)))
    assert data is not None
    assert [axis["name"] for axis in data["axes"]] == ["size"]


def test_a_table_without_mixtures_has_no_explorer(losses: pd.DataFrame, analyse_table: Analyse) -> None:
    apart = losses[losses["weight"].eq(1.0)]
    assert explorer_data(analyse_table(apart, fast=True)) is None


@needs_node
@pytest.mark.parametrize(
    ("times", "text"),
    [
        (1.0, ""),
        (
            3.0,
            "Extrapolated: N is 3 times the largest fitted, with no back-test of the law.",
        ),
    ],
)
def test_sizes_too_few_to_test_the_law_beyond_are_said(
    losses: pd.DataFrame, analyse_table: Analyse, times: float, text: str
) -> None:
    sizes = sorted(losses["size"].unique())[:3]
    data = page_data(analyse_table(losses[losses["size"].isin(sizes)]))
    assert data["untested"] == ["size"]
    state = {"size": times * data["size"][1], "weights": [0.5, 0.5]}
    assert run_script(f"extrapolation(data, {json.dumps(state)})", data) == text
