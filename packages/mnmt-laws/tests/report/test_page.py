"""The page needs nothing else, and its scripts calculate what the fit predicts."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import LawFit, Perturbation, fitted_fraction, recommend
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.figures import FRONTIER, FigureGroup, draw_figures
from mnmt_laws.report.page import explored_fit, explorer_data, render_page

NODE = shutil.which("node")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

Analyse = Callable[..., Analysis]


@pytest.fixture(params=["loss", "chrf"])
def analysis(request: pytest.FixtureRequest) -> Analysis:
    """The analysis of a metric that falls with size, and of one that rises."""
    requested: Analysis = request.getfixturevalue(f"{request.param}_analysis")
    return requested


def test_page_holds_each_kind_of_figure_once(page: Any) -> None:
    figures = re.findall(r"<figure.*?</figure>", page.text, flags=re.DOTALL)
    headings = [heading for figure in figures for heading in re.findall(r"<h2[^>]*>([^<]+)</h2>", figure)]
    assert headings == [
        "Losses and laws",
        "The same, above the limit",
        "Coefficients over the weight",
        "Effective share of the model",
        "Relative gain",
        "Held-out models",
        "Translation quality against loss",
        "What the mixture acts through",
        "Intervals by method",
        "Runs to train next",
    ]
    assert all(re.search(r"<figcaption>.{40,}</figcaption>", figure) for figure in figures)


def test_page_fetches_nothing(page: Any) -> None:
    text = page.text
    assert re.findall(r"url\((?!#)|@import|\bfetch\(|\bimport\(|XMLHttpRequest|<link|<iframe", text) == []
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a namespace, not an address


def test_contents_lead_to_headings(page: Any) -> None:
    targets = re.findall(r'href="#([^"]+)"', page.text)
    names = re.findall(r'\bid="([^"]+)"', page.text)
    assert len(targets) > 15
    assert set(targets) <= set(names)
    assert len(names) == len(set(names))


def test_names_cannot_inject_markup(losses: pd.DataFrame, analyse_table: Analyse) -> None:
    renamed = losses.drop(columns="mixture").replace({"task": {"aa": "</script><b>de"}})
    analysis = analyse_table(renamed, uncertainty=Perturbation(refits=0))
    frontier = FigureGroup(title=FRONTIER, caption="", charts=())
    assert "<b>de" not in render_page(analysis, [frontier])


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
    answers = run_script(
        "data.places.map(([task, size, weight]) => describe(data.tasks[task], size, weight, data.rising))",
        {**page_data(analysis), "places": places},
    )
    for (task, size, weight), answer in zip(places, answers, strict=True):
        expected = described(analysis.capacity, analysis.tasks[task], size, weight)
        for name, value in expected.items():
            assert answer[name] == pytest.approx(value, rel=1e-9, abs=1e-12)


@needs_node
def test_the_page_recommends_what_recommend_does(analysis: Analysis) -> None:
    places = [(size, share) for size in (2e4, 1e6) for share in (0.2, 0.5, 0.7)]
    answers = run_script(
        "data.places.map(([size, share]) => recommend(data.tasks, size, share, data.rising))",
        {**page_data(analysis), "places": places},
    )
    for (size, share), weight in zip(places, answers, strict=True):
        advice = recommend(analysis.capacity, size=size, preference={"aa": share, "bb": 1 - share})
        assert weight == pytest.approx(advice.weights["aa"], abs=2e-4)


@needs_node
def test_a_weight_implies_the_preference_that_recommends_it(loss_analysis: Analysis) -> None:
    preferences = run_script(
        "[0.2, 0.4, 0.6].map((share) => impliedPreference(data.tasks, 1e5, "
        "recommend(data.tasks, 1e5, share, false), false))",
        page_data(loss_analysis),
    )
    assert preferences == pytest.approx([0.2, 0.4, 0.6], abs=1e-3)


@needs_node
def test_the_page_predicts_mixtures_of_three_tasks(three_analysis: Analysis) -> None:
    fitted, mixture = explored_fit(three_analysis), {"aa": 0.5, "bb": 0.2, "cc": 0.3}
    assert fitted.law.name == "simplex-capacity"
    answers = run_script(
        "data.tasks.map((task, index) => "
        "describe(beside(data, index, data.mixture), 2e5, data.mixture[index], data.rising))",
        {**page_data(three_analysis), "mixture": list(mixture.values())},
    )
    for task, answer in zip(fitted.tasks, answers, strict=True):
        where: dict[str, Any] = {"task": task, "size": 2e5, "mixture": mixture}
        assert answer["value"] == pytest.approx(float(fitted.predict(**where)), rel=1e-9)
        ends = np.quantile(fitted.predict(draws=True, **where), [0.025, 0.975]).tolist()
        assert answer["interval"] == pytest.approx(ends, rel=1e-9)


@needs_node
def test_sizes_are_read_as_people_write_them() -> None:
    texts = ["1e9", "2.5B", "300k", " 1,000,000 ", "7 m", "0", "-3", "many", "", "1e999"]
    assert run_script("data.map(parseSize)", texts) == [1e9, 2.5e9, 3e5, 1e6, 7e6, *[None] * 5]


@needs_node
def test_no_refits_leave_the_interval_unknown(loss_analysis: Analysis) -> None:
    bare = page_data(loss_analysis)
    task = {**bare["tasks"][0], "draws": []}
    answers = run_script("describe(data, 1e5, 0.3, false)", task)
    assert answers["interval"] is None
    assert run_script("formatInterval(describe(data, 1e5, 0.3, false).interval)", task) == "unknown"


def test_the_page_holds_models_weights_and_refits(loss_analysis: Analysis) -> None:
    data = page_data(loss_analysis)
    assert data["sizes"] == [1e4, 2e4, 4e4, 8e4, 1.6e5]
    assert data["range"] == pytest.approx([0.1, 0.7])
    assert [task["weights"] for task in data["tasks"]] == [[0.1, 1.0], pytest.approx([0.3, 1.0])]
    assert [len(task["draws"]) for task in data["tasks"]] == [10, 10]
    assert len(data["models"]) == 5 * 3  # sizes × mixtures of both tasks
    assert sum(model["role"] == "held-out" for model in data["models"]) == 3
    assert data["models"][-1]["label"].startswith("160K, p = 70% aa: aa 0.")
    assert data["models"][-1]["label"].endswith("(held out)")


def test_a_table_without_mixtures_has_no_explorer(losses: pd.DataFrame, analyse_table: Analyse) -> None:
    apart = losses[losses["weight"].eq(1.0)]
    assert explorer_data(analyse_table(apart, uncertainty=Perturbation(refits=0))) is None


@needs_browser
def test_two_tasks_run_in_a_browser(loss_analysis: Analysis, page: Any, tmp_path: Path) -> None:
    rendered = browse(page.text, tmp_path)
    advice = recommend(loss_analysis.capacity, size=max(loss_analysis.sizes))
    for task in loss_analysis.tasks:
        assert f">{advice.weights[task]:.1%}</dd>" in rendered
        assert f">{advice.predicted[task]:#.4g}</dd>" in rendered
    assert len(re.findall(r'<g class="model[ "]', rendered)) == len(page_data(loss_analysis)["models"])
    assert re.search(r'<figure class="static-frontier" hidden', rendered)


@needs_browser
def test_three_tasks_run_in_a_browser(three_analysis: Analysis, tmp_path: Path) -> None:
    rendered = browse(render_page(three_analysis, draw_figures(three_analysis)), tmp_path)
    equal = dict.fromkeys(three_analysis.tasks, 1 / 3)
    for task in three_analysis.tasks:
        value = float(
            explored_fit(three_analysis).predict(task=task, size=max(three_analysis.sizes), mixture=equal)
        )
        assert f">{value:#.4g}</dd>" in rendered
    assert rendered.count('class="bar"') == 3


def browse(text: str, folder: Path) -> str:
    """The page as it stands once its scripts have run."""
    page = folder / "index.html"
    page.write_text(text, encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command = [BROWSER or "chromium", *options, "--virtual-time-budget=2000", "--dump-dom", page.as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return html.unescape(ran.stdout)
