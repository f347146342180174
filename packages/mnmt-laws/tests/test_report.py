"""The report: one page that needs nothing else, and the same numbers as JSON."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import (
    LawFit,
    Perturbation,
    ResidualBootstrap,
    TaskLaw,
    build_report,
    fit,
    fitted_fraction,
    read_table,
    recommend,
    select,
    simulate,
)
from mnmt_laws.compare import compare
from mnmt_laws.convergence import Curve
from mnmt_laws.design import design
from mnmt_laws.more_tasks import predict_more_tasks
from mnmt_laws.parameters import fit_document
from mnmt_laws.report.analysis import Analysis, analyse
from mnmt_laws.report.explorer import explorer_data
from mnmt_laws.report.page import render_page
from mnmt_laws.report.plates import draw_plates
from mnmt_laws.source import Source

FEW = Perturbation(refits=5)
NODE = shutil.which("node")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


def build(source: object, out: Path, **options: object) -> tuple[str, dict[str, Any]]:
    build_report(source, out=out, uncertainty=FEW, **options)  # type: ignore[arg-type]
    document = json.loads((out / "report.json").read_text())
    return (out / "index.html").read_text(), document


def analysed(table: pd.DataFrame) -> Analysis:
    return analyse(
        Source(table=read_table(table)),
        metric="loss",
        testset=None,
        architecture=None,
        objective="log-ols",
        uncertainty=ResidualBootstrap(refits=20),
    )


def embedded(page: str) -> dict[str, Any]:
    """What the page's scripts calculate with."""
    found = re.search(r'<script type="application/json" id="explorer-data">(.*?)</script>', page)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data


def run_script(expression: str, data: object) -> Any:
    """The value of an expression in which `data` and the page's functions are known."""
    names = ("capacity.js", "mixture.js")
    package = resources.files("mnmt_laws.report")
    functions = "\n".join(package.joinpath(name).read_text(encoding="utf-8") for name in names)
    program = f"{functions}\nconst data = {json.dumps(data)};\nconsole.log(JSON.stringify({expression}));"
    ran = subprocess.run([NODE or "node", "-"], input=program, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def three_tasks() -> pd.DataFrame:
    gains = {"aa": {"bb": 0.3, "cc": 0.5}, "bb": {"aa": 0.2, "cc": 0.2}, "cc": {"aa": 0.5, "bb": 0.1}}
    laws = {
        task: TaskLaw(alpha=0.5, beta=60, l_inf=0.3, c1=gain, c2=0.6, c3=1.0) for task, gain in gains.items()
    }
    pairs = [("aa", "bb"), ("aa", "cc"), ("bb", "cc")]
    mixtures = [{task: 1.0} for task in laws]
    mixtures += [{one: p, two: 1 - p} for one, two in pairs for p in (0.25, 0.5, 0.75)]
    mixtures.append({"aa": 0.25, "bb": 0.25, "cc": 0.5})
    return simulate(laws, sizes=(1e4, 3e4, 1e5, 3e5), mixtures=mixtures, noise=0.003)


def test_page_is_self_contained_and_holds_every_figure(study_records: Path, tmp_path: Path) -> None:
    page, _ = build(study_records, tmp_path / "report")
    sources = re.findall(r'src="([^"]*)"', page)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    # losses, parallels, coefficients and fractions a task; relative gain; frontier; held out; chrF against loss
    assert len(sources) == 4 * 2 + 4
    panels = [base64.b64decode(source.partition(",")[2]) for source in sources]
    for panel in panels:
        assert ElementTree.fromstring(panel).tag == "{http://www.w3.org/2000/svg}svg"
    figures = [path.read_bytes() for path in (tmp_path / "report" / "figures").glob("*.svg")]
    assert sorted(figures) == sorted(panels)
    headings = re.findall(r"<h2[^>]*>([^<]+)</h2>", page)
    for heading in (
        "What was found",
        "Losses and laws",
        "Choose a size and weights",
        "Held-out models",
        "Runs",
    ):
        assert heading in headings
    assert "loss became NaN at step 12" in page


def test_page_fetches_nothing(study_table: pd.DataFrame, tmp_path: Path) -> None:
    page, _ = build(study_table, tmp_path / "report")
    assert re.findall(r"\b(?:url\((?!#)|@import|fetch\(|import\(|XMLHttpRequest|<link)", page) == []
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a namespace, not an address


def test_contents_lead_to_headings(study_table: pd.DataFrame, tmp_path: Path) -> None:
    page, _ = build(study_table, tmp_path / "report")
    targets = re.findall(r'href="#([^"]+)"', page)
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(targets) > 12
    assert set(targets) <= set(names)
    assert len(names) == len(set(names))


def test_every_figure_has_a_caption(study_table: pd.DataFrame, tmp_path: Path) -> None:
    page, _ = build(study_table, tmp_path / "report")
    figures = re.findall(r"<figure.*?</figure>", page, flags=re.DOTALL)
    captions = [re.search(r"<figcaption>(.{40,})</figcaption>", figure) for figure in figures]
    assert len(figures) == 8
    assert all(captions)


def test_json_agrees_with_fit_and_the_table(
    study_records: Path, study_table: pd.DataFrame, tmp_path: Path
) -> None:
    _, document = build(study_records, tmp_path / "report")
    fitted = fit(select(read_table(tmp_path / "report" / "runs.csv")), law="joint", uncertainty=FEW)
    assert document["fits"]["joint"] == fit_document(fitted)
    assert document["tasks"] == ["en-de", "en-zh"]
    assert {run["run"]: run["wall_seconds"] for run in document["runs"]}["broken"] == 2.5
    assert document["wall_seconds"] == pytest.approx(12.5 * 48 + 2.5)
    assert [row["true"] for row in document["irreducible"]] == [0.18, 0.25]
    assert document["held_out"]["capacity"]["count"] == len(document["held_out"]["rows"]) == 24
    assert 0 < document["held_out"]["capacity"]["median_relative_error"] < 0.02
    assert {row["weight"] for row in document["effective_fractions"]} == {0.1, 0.3, 0.5, 0.7, 0.9, 1.0}
    assert any("broken failed" in warning for warning in document["warnings"])


def test_the_same_study_gives_the_same_report(study_table: pd.DataFrame, tmp_path: Path) -> None:
    assert build(study_table, tmp_path / "a") == build(study_table, tmp_path / "b")


def test_a_table_of_one_task_without_extras_has_a_report(study_table: pd.DataFrame, tmp_path: Path) -> None:
    plain = study_table[(study_table["task"] == "en-de") & (study_table["metric"] == "loss")]
    plain = plain[plain["role"] == "fit"][["size", "task", "weight", "metric", "value"]]
    page, document = build(plain, tmp_path / "report")
    assert "Choose a size" not in page
    assert "<script" not in page
    assert document["held_out"]["capacity"]["median_relative_error"] is None
    assert document["wall_seconds"] is None
    assert document["irreducible"] == []


def test_a_rising_metric_has_a_report(study_table: pd.DataFrame, tmp_path: Path) -> None:
    page, document = build(study_table, tmp_path / "report", metric="chrf")
    assert document["unit"] == "points"
    assert document["irreducible"] == []
    assert embedded(page)["rising"] is True


def test_names_cannot_inject_markup(study_table: pd.DataFrame, tmp_path: Path) -> None:
    evil = "</script><b>de"
    renamed = study_table.replace({"task": {"en-de": evil}}).drop(columns="mixture")
    page, _ = build(renamed, tmp_path / "report")
    assert "<b>de" not in page
    assert evil in {task["name"] for task in embedded(page)["tasks"]}


def test_no_refits_leave_uncertainty_unknown(study_table: pd.DataFrame, tmp_path: Path) -> None:
    build_report(study_table, out=tmp_path, uncertainty=Perturbation(refits=0))
    document = json.loads((tmp_path / "report.json").read_text())
    assert {parameter["std"] for parameter in document["fits"]["joint"]["parameters"]} == {None}
    assert [task["draws"] for task in embedded((tmp_path / "index.html").read_text())["tasks"]] == [[], []]


def test_scatter_beyond_the_assumed_noise_is_reported(study_table: pd.DataFrame, tmp_path: Path) -> None:
    _, document = build(study_table, tmp_path / "quiet")
    assert not any("--noise" in warning for warning in document["warnings"])
    noise = np.random.default_rng(0).normal(1, 0.06, len(study_table))
    wild = study_table.assign(value=study_table["value"] * noise)
    _, document = build(wild, tmp_path / "wild")
    assert any(
        "standard deviations assume 1.0% noise and are too small" in line for line in document["warnings"]
    )
    assert 0.03 < document["scatter"] < 0.1


def test_the_page_holds_the_models_and_the_law(study_table: pd.DataFrame) -> None:
    analysis = analysed(study_table)
    data = explorer_data(analysis)
    assert data is not None
    assert data["sizes"] == analysis.sizes
    assert data["range"] == [0.1, 0.9]
    assert len(data["models"]) == 6 * 6  # sizes × mixtures of both tasks
    assert sum(model["role"] == "held-out" for model in data["models"]) == 6 + 5
    assert data["tasks"][0]["weights"] == [0.1, 1.0]
    assert [len(task["draws"]) for task in data["tasks"]] == [20, 20]
    json.dumps(data, allow_nan=False)


def points() -> list[tuple[int, float, float]]:
    """Task, size and weight."""
    return [
        (task, size, weight)
        for task in (0, 1)
        for size in (5e3, 262000.0, 3.3e9)
        for weight in (0.001, 0.2, 0.5, 0.97, 1.0)
    ]


def described(fitted: LawFit, task: str, size: float, weight: float) -> dict[str, Any]:
    where = {"task": task, "size": size, "weight": weight}
    draws = fitted.predict_draws(**where)  # type: ignore[arg-type]
    fraction = float(fitted_fraction(fitted, task=task, weight=weight))
    return {
        "value": float(fitted.predict(**where)),  # type: ignore[arg-type]
        "interval": np.quantile(draws, [0.025, 0.975]).tolist(),
        "fraction": fraction,
        "effective": fraction * size,
        "alone": float(fitted.predict(task=task, size=size)),
    }


@needs_node
@pytest.mark.parametrize("metric", ["loss", "chrf"])
def test_the_page_predicts_what_the_fit_predicts(
    study_table: pd.DataFrame, tmp_path: Path, metric: str
) -> None:
    page, _ = build(study_table, tmp_path, metric=metric)
    fitted = fit(select(read_table(study_table), metric=metric), law="capacity", uncertainty=FEW)
    places = points()
    told = run_script(
        "data.points.map(([task, size, weight]) => describe(data.tasks[task], size, weight, data.rising))",
        {**embedded(page), "points": places},
    )
    for (task, size, weight), own in zip(places, told, strict=True):
        for name, expected in described(fitted, fitted.tasks[task], size, weight).items():
            assert own[name] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@needs_node
@pytest.mark.parametrize("metric", ["loss", "chrf"])
def test_the_page_recommends_what_recommend_does(
    study_table: pd.DataFrame, tmp_path: Path, metric: str
) -> None:
    page, _ = build(study_table, tmp_path, metric=metric)
    fitted = fit(select(read_table(study_table), metric=metric), law="capacity", uncertainty=FEW)
    places = [(size, preference) for size in (2e4, 1e6) for preference in (0.2, 0.5, 0.7)]
    told = run_script(
        "data.places.map(([size, share]) => recommend(data.tasks, size, share, data.rising))",
        {**embedded(page), "places": places},
    )
    for (size, share), weight in zip(places, told, strict=True):
        advice = recommend(fitted, size=size, preference={"en-de": share, "en-zh": 1 - share})
        assert weight == pytest.approx(advice.weights["en-de"], abs=2e-4)


@needs_node
def test_a_weight_implies_the_preference_that_recommends_it(study_table: pd.DataFrame) -> None:
    data = explorer_data(analysed(study_table))
    found = run_script(
        "[0.2, 0.4, 0.6].map((share) => impliedPreference(data.tasks, 1e5, "
        "recommend(data.tasks, 1e5, share, false), false))",
        data,
    )
    assert found == pytest.approx([0.2, 0.4, 0.6], abs=1e-3)


@needs_node
def test_the_page_predicts_mixtures_of_three_tasks() -> None:
    analysis = analysed(three_tasks())
    more = predict_more_tasks(analysis.observations, uncertainty=ResidualBootstrap(refits=8))
    data = explorer_data(replace(analysis, more_tasks=more))
    assert data is not None
    assert "models" not in data
    mixture = {"aa": 0.5, "bb": 0.2, "cc": 0.3}
    told = run_script(
        "data.tasks.map((task, index) => describe(beside(data, index, data.mixture), 2e5, data.mixture[index]))",
        {**data, "mixture": list(mixture.values())},
    )
    for task, own in zip(more.fit.tasks, told, strict=True):
        where = {"task": task, "size": 2e5, "mixture": mixture}
        assert own["value"] == pytest.approx(float(more.fit.predict(**where)), rel=1e-9)  # type: ignore[arg-type]
        draws = more.fit.predict_draws(**where)  # type: ignore[arg-type]
        assert own["interval"] == pytest.approx(np.quantile(draws, [0.025, 0.975]).tolist(), rel=1e-9)


@needs_node
def test_sizes_are_read_as_people_write_them() -> None:
    texts = ["1e9", "2.5B", "300k", " 1,000,000 ", "7 m", "0", "-3", "many", "", "1e999"]
    assert run_script("data.map(parseSize)", texts) == [1e9, 2.5e9, 3e5, 1e6, 7e6, *[None] * 5]


@needs_browser
def test_the_page_runs_in_a_browser(study_table: pd.DataFrame, tmp_path: Path) -> None:
    page, _ = build(study_table, tmp_path / "report")
    fitted = fit(select(read_table(study_table)), law="capacity", uncertainty=FEW)
    shown = browse(tmp_path / "report" / "index.html", tmp_path / "profile")
    advice = recommend(fitted, size=262000)
    for task in fitted.tasks:
        assert f">{advice.weights[task]:.1%}</dd>" in shown
        assert f">{advice.predicted[task]:#.4g}</dd>" in shown
    assert len(re.findall(r'<g class="model[ "]', shown)) == len(embedded(page)["models"])
    assert re.search(r'<figure class="static-frontier" hidden', shown)


def browse(page: Path, profile: Path) -> str:
    """The page as it stands once its scripts have run."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom"]
    command = [BROWSER or "chromium", *options, "--virtual-time-budget=2000", page.as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return html.unescape(ran.stdout)


def answered(study_table: pd.DataFrame) -> Analysis:
    """An analysis in which every optional question was asked."""
    analysis = analysed(study_table)
    frame = analysis.observations.frame
    large = frame["size"].eq(frame["size"].max()) & frame["weight"].eq(0.1)
    observations = replace(analysis.observations, frame=frame.assign(corrected=large))
    steps = np.array([100.0, 300.0, 1000.0])
    curve = Curve(
        run="r", task="en-de", weight=0.1, size=1e5, steps=steps, values=3 / np.sqrt(steps),
        fitted_steps=np.geomspace(100, 5000, 20), fitted_values=3 / np.sqrt(np.geomspace(100, 5000, 20)),
        horizon=5000.0, value=3 / np.sqrt(5000), std=0.001, corrected=True,
    )  # fmt: skip
    intervals = pd.DataFrame(
        [("en-de", "alpha", method, 0.6, 0.5, 0.7) for method in ("profile", "residual")],
        columns=["task", "parameter", "method", "estimate", "lower", "upper"],
    )
    return replace(
        analysis,
        observations=observations,
        comparison=compare(observations, uncertainty=ResidualBootstrap(refits=4)),
        testsets={"news": analysis.effective, "test": analysis.effective},
        curves=(curve,),
        recommendation=recommend(analysis.capacity, size=1e6),
        design=design(analysis.capacity, quantity="loss:en-de@size=1e6,p=0.3", runs=2),
        intervals=intervals,
    )


def test_questions_that_were_asked_have_figures_and_tables(study_table: pd.DataFrame) -> None:
    analysis = answered(study_table)
    page = render_page(analysis, draw_plates(analysis))
    headings = re.findall(r"<h2[^>]*>([^<]+)</h2>", page)
    for heading in (
        "What the mixture acts through", "Laws by what the mixture acts through", "Learning curves",
        "Learning curves, one by one", "Recommended mixture", "Runs to train next",
        "Runs to train next, in order", "Intervals by method", "Intervals by method, one by one",
    ):  # fmt: skip
        assert heading in headings
    assert analysis.comparison is not None
    assert html.escape(analysis.comparison.verdict, quote=False) in page
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))


def test_corrected_values_carry_a_dagger(study_table: pd.DataFrame) -> None:
    analysis = answered(study_table)
    page = render_page(analysis, draw_plates(analysis))
    held_out = page[page.index('id="table-held-out-models-one-by-one"') :].partition("</table>")[0]
    assert held_out.count("†</td>") == 2  # the largest model at weight 0.1, once a task
    assert "† corrected for convergence." in held_out
    data = embedded(page)
    assert sum(model["corrected"] for model in data["models"]) == 2


def test_models_of_more_tasks_have_a_figure_and_a_table() -> None:
    analysis = analysed(three_tasks())
    more = predict_more_tasks(analysis.observations, uncertainty=ResidualBootstrap(refits=4))
    asked = replace(analysis, more_tasks=more)
    page = render_page(asked, draw_plates(asked))
    assert 'id="models-of-more-tasks"' in page
    assert page.count("<td>aa:0.25 bb:0.25 cc:0.5</td>") == 3 * 4
