"""The explorer shows what the law predicts: its scripts, run by node, against Python."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
import pytest
import vl_convert

from mnmt_laws import Perturbation, fit
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.explorer import explorer_data
from mnmt_laws.report.explorer_charts import explorer_specs

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
Analyse = Callable[..., Analysis]


@pytest.fixture
def analysis(request: pytest.FixtureRequest) -> Analysis:
    """The analysis that a test names."""
    named: Analysis = request.getfixturevalue(request.param)
    return named


def page_data(analysis: Analysis) -> dict[str, Any]:
    """The data of the page, as its script reads them."""
    data = explorer_data(analysis.study)
    assert data is not None
    read: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
    for grid in read["grids"].values():
        numbers = np.frombuffer(base64.b64decode(grid["numbers"]), "<f4")
        grid["numbers"] = [None if np.isnan(number) else float(number) for number in numbers]
    return read


def run_script(expression: str, data: object) -> Any:
    """The value of an expression in which `data` and the explorer's functions are known."""
    assets = resources.files("mnmt_laws.report").joinpath("assets")
    program = (
        f"{assets.joinpath('explorer.js').read_text(encoding='utf-8')}\nconst data = {json.dumps(data)};\n"
        "for (const grid of Object.values(data.grids ?? {})) {\n"
        "  grid.numbers = grid.numbers.map((number) => number ?? NaN);\n}\n"
        f"console.log(JSON.stringify({expression}));"
    )
    ran = subprocess.run([NODE or "node", "-"], input=program, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


@needs_node
@pytest.mark.parametrize(
    "analysis", ["loss_analysis", "chrf_analysis", "three_analysis", "length_analysis"], indirect=True
)
def test_the_page_shows_what_python_predicts(analysis: Analysis) -> None:
    data, rng, advice = page_data(analysis), np.random.default_rng(0), analysis.study.recommendation
    assert advice is not None
    states = []
    for number in rng.integers(len(data["mixtures"]), size=20):
        place = {
            name: float(np.exp(rng.uniform(np.log(data[name][0]), np.log(10 * data[name][1]))))
            for name in ("size", "tokens")
            if data[name]
        }
        states.append({"weights": data["mixtures"][number], **place})
    answers = run_script("data.states.map((state) => predictions(data, state))", {**data, "states": states})
    for state, answer in zip(states, answers, strict=True):
        where: dict[str, Any] = {name: value for name, value in state.items() if name != "weights"}
        mixture, tasks = dict(zip(data["tasks"], state["weights"], strict=True)), data["tasks"]
        mean, (low, high) = advice.forecast.predict(np.array([state["weights"]]), **where)
        for row in answer:
            assert row["weight"] == mixture[row["task"]]
            if not row["weight"]:
                assert row["value"] is None  # no forecast without training on it
                continue
            place = tasks.index(row["task"])
            assert row["value"] == pytest.approx(mean[place, 0], rel=5e-3)
            # A quantile of few draws has kinks, which no grid follows.
            width = high[place, 0] - low[place, 0]
            assert row["low"] == pytest.approx(low[place, 0], abs=0.6 * width)
            assert row["high"] == pytest.approx(high[place, 0], abs=0.6 * width)


@needs_node
@pytest.mark.parametrize("analysis", ["loss_analysis", "chrf_analysis"], indirect=True)
def test_the_cost_is_that_of_the_forecast(analysis: Analysis) -> None:
    data, advice = page_data(analysis), analysis.study.recommendation
    assert advice is not None
    states = [{**data["start"], "weights": weights, "importance": data["importance"]}
              for weights in data["mixtures"][10:90:20]]  # fmt: skip
    data |= {"states": states}
    costs = run_script("data.states.map((s) => costOf(data, s, predictions(data, s)))", data)
    points = np.array([state["weights"] for state in states])
    losses = advice.forecast.sign * advice.forecast.losses(points).mean(axis=0)
    expected = np.array(data["importance"]) @ losses
    assert costs == pytest.approx(expected.tolist(), rel=5e-3)
    said = run_script("data.states.map((s) => costSentence(data, s, predictions(data, s)))", data)
    assert all("than the advised mixture" in sentence for sentence in said)


@pytest.mark.parametrize(
    ("analysis", "step"), [("loss_analysis", 0.01), ("three_analysis", 0.05)], indirect=["analysis"]
)
def test_mixtures_are_evenly_spread_with_the_trained_and_the_advised(analysis: Analysis, step: float) -> None:
    data = explorer_data(analysis.study)
    assert data is not None
    assert data["step"] == step
    mixtures = np.array(data["mixtures"])
    assert np.allclose(mixtures.sum(axis=1), 1.0)
    assert (mixtures >= 0).all()
    study = analysis.study
    trained = study.observations.mixtures_of(study.law.rows)[study.tasks].to_numpy()
    for mixture in [*trained, data["start"]["weights"], np.eye(len(study.tasks))[0]]:
        assert np.abs(mixtures - mixture).sum(axis=1).min() < 1e-5


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
    data = explorer_data(analyse_table(alone, uncertainty=Perturbation(refits=0)).study)
    assert data is not None
    assert data["mixtures"] == [[1.0]]


def test_a_table_without_mixtures_has_no_explorer(losses: pd.DataFrame, analyse_table: Analyse) -> None:
    apart = losses[losses["weight"].eq(1.0)]
    assert explorer_data(analyse_table(apart, uncertainty=Perturbation(refits=0)).study) is None


@needs_node
def test_sizes_too_few_to_test_the_law_beyond_are_said(losses: pd.DataFrame, by_law: Any) -> None:
    sizes = sorted(losses["size"].unique())[:3]
    law = fit(losses[losses["size"].isin(sizes)], law="capacity", uncertainty=Perturbation(refits=5))
    data = page_data(by_law(law))
    assert data["untested"] == ["size"]
    states = [{"size": times * data["size"][1], "weights": [0.5, 0.5]} for times in (1, 3)]
    shown = run_script("data.states.map((state) => extrapolation(data, state))", {**data, "states": states})
    assert shown == ["", "Extrapolated: N is 3 times the largest fitted, with no back-test."]


def test_charts_of_two_tasks_compile(loss_analysis: Analysis) -> None:
    data = explorer_data(loss_analysis.study)
    assert data is not None
    specs = explorer_specs(loss_analysis.study, data)
    assert set(specs) == {"weights", "plane"}
    for spec, datasets in zip(specs.values(), ({"curve", "now"}, {"plane", "now", "new"}), strict=True):
        compiled = vl_convert.vegalite_to_vega(spec)
        assert datasets <= {source["name"] for source in compiled["data"]}
        assert "chosen" in {signal["name"] for signal in compiled["signals"]}


def test_more_tasks_have_a_line_each(three_analysis: Analysis) -> None:
    data = explorer_data(three_analysis.study)
    assert data is not None
    assert set(explorer_specs(three_analysis.study, data)) == {"now"}
