"""The page's interactive frontier: its scripts calculate what the fit predicts."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import LawFit, Perturbation, TaskLaw, fitted_fraction, read_table, recommend, simulate
from mnmt_laws.report.analysis import Analysis, analyse
from mnmt_laws.report.figures import draw_figures
from mnmt_laws.report.page import explored_fit, explorer_data, render_page
from mnmt_laws.tables.source import Source

NODE = shutil.which("node")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

SIZES = (1e4, 2e4, 4e4, 8e4)
AA = TaskLaw(alpha=0.62, beta=300, l_inf=0.18, c1=0.2, c2=0.5, c3=1.0)
BB = TaskLaw(alpha=0.55, beta=180, l_inf=0.25, c1=0.12, c2=0.4, c3=1.3)


def two_tasks() -> pd.DataFrame:
    table = simulate({"aa": AA, "bb": BB}, sizes=SIZES, weights=(0.0, 0.1, 0.3, 0.7, 1.0), noise=0.01)
    table = table.assign(role=np.where(table["size"] == SIZES[-1], "held-out", "fit"))
    chrf = table.assign(metric="chrf", value=80 - 18 * table["value"])
    return pd.concat([table, chrf], ignore_index=True)


def three_tasks() -> pd.DataFrame:
    gains = {"aa": {"bb": 0.3, "cc": 0.5}, "bb": {"aa": 0.2, "cc": 0.2}, "cc": {"aa": 0.5, "bb": 0.1}}
    laws = {task: replace(AA, c1=gain) for task, gain in gains.items()}
    pairs = [("aa", "bb"), ("aa", "cc"), ("bb", "cc")]
    mixtures = [{task: 1.0} for task in laws]
    mixtures += [{one: p, two: 1 - p} for one, two in pairs for p in (0.25, 0.5, 0.75)]
    mixtures.append({"aa": 0.25, "bb": 0.25, "cc": 0.5})
    return simulate(laws, sizes=SIZES, mixtures=mixtures, noise=0.003)


def analysed(table: pd.DataFrame, *, metric: str = "loss", refits: int = 8) -> Analysis:
    return analyse(
        Source(table=read_table(table)),
        metric=metric,
        testset=None,
        architecture=None,
        horizon=None,
        objective="log-ols",
        uncertainty=Perturbation(refits=refits),
    )


@pytest.fixture(scope="module", params=["loss", "chrf"])
def analysis(request: pytest.FixtureRequest) -> Analysis:
    return analysed(two_tasks(), metric=request.param)


@pytest.fixture(scope="module")
def losses() -> Analysis:
    return analysed(two_tasks())


@pytest.fixture(scope="module")
def of_three() -> Analysis:
    return analysed(three_tasks())


def page_data(analysis: Analysis) -> dict[str, Any]:
    """What the page embeds, as a browser reads it."""
    data = explorer_data(analysis)
    assert data is not None
    read: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
    return read


def run_script(expression: str, data: object) -> Any:
    """The value of an expression in which `data` and the page's functions are known."""
    package = resources.files("mnmt_laws.report").joinpath("assets")
    scripts = [package.joinpath(name).read_text(encoding="utf-8") for name in ("capacity.js", "mixture.js")]
    program = "\n".join(
        [*scripts, f"const data = {json.dumps(data)};", f"console.log(JSON.stringify({expression}));"]
    )
    ran = subprocess.run([NODE or "node", "-"], input=program, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def described(fitted: LawFit, task: str, size: float, weight: float) -> dict[str, Any]:
    where: dict[str, Any] = {"task": task, "size": size, "weight": weight}
    fraction = float(fitted_fraction(fitted, task=task, weight=weight))
    return {
        "value": float(fitted.predict(**where)),
        "interval": np.quantile(fitted.predict(draws=True, **where), [0.025, 0.975]).tolist(),
        "fraction": fraction,
        "effective": fraction * size,
        "alone": float(fitted.predict(task=task, size=size)),
    }


@needs_node
def test_the_page_predicts_what_the_fit_predicts(analysis: Analysis) -> None:
    places = [
        (task, size, weight)
        for task in (0, 1)
        for size in (5e3, 8e4, 3.3e9)
        for weight in (0.001, 0.2, 0.5, 0.97, 1.0)
    ]
    told = run_script(
        "data.places.map(([task, size, weight]) => describe(data.tasks[task], size, weight, data.rising))",
        {**page_data(analysis), "places": places},
    )
    for (task, size, weight), own in zip(places, told, strict=True):
        expected = described(analysis.capacity, analysis.tasks[task], size, weight)
        for name, value in expected.items():
            assert own[name] == pytest.approx(value, rel=1e-9, abs=1e-12)


@needs_node
def test_the_page_recommends_what_recommend_does(analysis: Analysis) -> None:
    places = [(size, share) for size in (2e4, 1e6) for share in (0.2, 0.5, 0.7)]
    told = run_script(
        "data.places.map(([size, share]) => recommend(data.tasks, size, share, data.rising))",
        {**page_data(analysis), "places": places},
    )
    for (size, share), weight in zip(places, told, strict=True):
        advice = recommend(analysis.capacity, size=size, preference={"aa": share, "bb": 1 - share})
        assert weight == pytest.approx(advice.weights["aa"], abs=2e-4)


@needs_node
def test_a_weight_implies_the_preference_that_recommends_it(losses: Analysis) -> None:
    found = run_script(
        "[0.2, 0.4, 0.6].map((share) => impliedPreference(data.tasks, 1e5, "
        "recommend(data.tasks, 1e5, share, false), false))",
        page_data(losses),
    )
    assert found == pytest.approx([0.2, 0.4, 0.6], abs=1e-3)


@needs_node
def test_the_page_predicts_mixtures_of_three_tasks(of_three: Analysis) -> None:
    fitted, mixture = explored_fit(of_three), {"aa": 0.5, "bb": 0.2, "cc": 0.3}
    assert fitted.law.name == "simplex-capacity"
    told = run_script(
        "data.tasks.map((task, index) => "
        "describe(beside(data, index, data.mixture), 2e5, data.mixture[index], data.rising))",
        {**page_data(of_three), "mixture": list(mixture.values())},
    )
    for task, own in zip(fitted.tasks, told, strict=True):
        where: dict[str, Any] = {"task": task, "size": 2e5, "mixture": mixture}
        assert own["value"] == pytest.approx(float(fitted.predict(**where)), rel=1e-9)
        ends = np.quantile(fitted.predict(draws=True, **where), [0.025, 0.975]).tolist()
        assert own["interval"] == pytest.approx(ends, rel=1e-9)


@needs_node
def test_sizes_are_read_as_people_write_them() -> None:
    texts = ["1e9", "2.5B", "300k", " 1,000,000 ", "7 m", "0", "-3", "many", "", "1e999"]
    assert run_script("data.map(parseSize)", texts) == [1e9, 2.5e9, 3e5, 1e6, 7e6, *[None] * 5]


@needs_node
def test_no_refits_leave_the_interval_unknown(losses: Analysis) -> None:
    bare = page_data(losses)
    task = {**bare["tasks"][0], "draws": []}
    told = run_script("describe(data, 1e5, 0.3, false)", task)
    assert told["interval"] is None
    assert run_script("formatInterval(describe(data, 1e5, 0.3, false).interval)", task) == "unknown"


def test_the_page_holds_models_weights_and_refits(losses: Analysis) -> None:
    data = page_data(losses)
    assert data["sizes"] == list(SIZES)
    assert data["range"] == pytest.approx([0.1, 0.7])
    assert [task["weights"] for task in data["tasks"]] == [[0.1, 1.0], pytest.approx([0.3, 1.0])]
    assert [len(task["draws"]) for task in data["tasks"]] == [8, 8]
    assert len(data["models"]) == 4 * 3  # sizes × mixtures of both tasks
    assert sum(model["role"] == "held-out" for model in data["models"]) == 3
    assert data["models"][-1]["label"].startswith("80K, p = 70% aa: aa 0.")
    assert data["models"][-1]["label"].endswith("(held out)")


def test_a_table_without_mixtures_has_no_explorer() -> None:
    apart = two_tasks()
    apart = apart[apart["metric"].eq("loss") & apart["weight"].eq(1.0)]
    assert explorer_data(analysed(apart, refits=0)) is None


@needs_browser
def test_two_tasks_run_in_a_browser(losses: Analysis, tmp_path: Path) -> None:
    shown = browse(losses, tmp_path)
    advice = recommend(losses.capacity, size=SIZES[-1])
    for task in losses.tasks:
        assert f">{advice.weights[task]:.1%}</dd>" in shown
        assert f">{advice.predicted[task]:#.4g}</dd>" in shown
    assert len(re.findall(r'<g class="model[ "]', shown)) == len(page_data(losses)["models"])
    assert re.search(r'<figure class="static-frontier" hidden', shown)


@needs_browser
def test_three_tasks_run_in_a_browser(of_three: Analysis, tmp_path: Path) -> None:
    shown = browse(of_three, tmp_path)
    equal = dict.fromkeys(of_three.tasks, 1 / 3)
    for task in of_three.tasks:
        value = float(explored_fit(of_three).predict(task=task, size=SIZES[-1], mixture=equal))
        assert f">{value:#.4g}</dd>" in shown
    assert shown.count('class="bar"') == 3


def browse(analysis: Analysis, folder: Path) -> str:
    """The page as it stands once its scripts have run."""
    page = folder / "index.html"
    page.write_text(render_page(analysis, draw_figures(analysis)), encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command = [BROWSER or "chromium", *options, "--virtual-time-budget=2000", "--dump-dom", page.as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return html.unescape(ran.stdout)
