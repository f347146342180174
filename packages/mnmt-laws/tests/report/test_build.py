"""The report: one page that needs nothing else, and the same numbers as JSON."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import Perturbation, TaskLaw, build_report, fit, observe, read_table, simulate
from mnmt_laws.fitting.parameters import fit_document
from mnmt_laws.fitting.uncertainty import ResidualBootstrap
from mnmt_laws.report.analysis import Analysis, analyse
from mnmt_laws.report.figures import draw_figures
from mnmt_laws.report.page import render_page
from mnmt_laws.tables.source import Source

FEW = Perturbation(refits=10)
LAWS = {
    "aa": TaskLaw(alpha=0.62, beta=300, l_inf=0.18, c1=0.2, c2=0.5, c3=1.0),
    "bb": TaskLaw(alpha=0.55, beta=180, l_inf=0.25, c1=0.12, c2=0.4, c3=1.3),
}
SIZES = (1e4, 2e4, 4e4, 8e4, 1.6e5)


def small_table() -> pd.DataFrame:
    """Two tasks on two test sets; the largest size is held out."""
    table = simulate(LAWS, sizes=SIZES, weights=(0.0, 0.1, 0.3, 0.7, 1.0), noise=0.005, seed=1)
    role = np.where(table["size"] == SIZES[-1], "held-out", "fit")
    table = table.assign(role=role, testset="test")
    news = table.assign(testset="news", value=1.2 * table["value"])
    chrf = table.assign(metric="chrf", value=80 - 18 * table["value"])
    return pd.concat([table, news, chrf], ignore_index=True)


def build(source: object, out: Path, **options: object) -> tuple[str, dict[str, Any]]:
    build_report(source, out=out, uncertainty=FEW, **options)  # type: ignore[arg-type]
    document = json.loads((out / "report.json").read_text())
    return (out / "index.html").read_text(), document


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """Page and document of the small table."""
    return build(small_table(), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyse(
        Source(table=read_table(small_table())),
        metric="loss",
        testset=None,
        architecture=None,
        horizon=None,
        objective="log-ols",
        uncertainty=FEW,
    )


def headings(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>([^<]+)</h2>", page)


def cells(page: str, anchor: str) -> Iterator[list[str]]:
    """The rows of the table under a heading."""
    table = page[page.index(f'id="table-{anchor}"') :].partition("</table>")[0]
    for row in re.findall(r"<tr><td>.*?</tr>", table):
        yield [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", row)]


def test_records_become_a_page_and_a_document(study_records: Path, tmp_path: Path) -> None:
    page, document = build(study_records, tmp_path / "report")
    sources = re.findall(r'src="([^"]*)"', page)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    panels = [base64.b64decode(source.partition(",")[2]) for source in sources]
    for panel in panels:
        assert ElementTree.fromstring(panel).tag == "{http://www.w3.org/2000/svg}svg"
    figures = [path.read_bytes() for path in (tmp_path / "report" / "figures").glob("*.svg")]
    assert sorted(figures) == sorted(panels)
    expected = {"What was found", "Losses and laws", "Choose a size and weights", "Held-out models", "Runs"}
    assert expected <= set(headings(page))
    assert "loss became NaN at step 12" in page
    fitted = fit(observe(tmp_path / "report" / "runs.csv"), law="joint", uncertainty=FEW)
    assert document["fits"]["joint"] == fit_document(fitted)
    assert document["tasks"] == ["en-de", "en-zh"]
    assert {run["run"]: run["wall_seconds"] for run in document["runs"]}["broken"] == 2.5
    assert document["wall_seconds"] == pytest.approx(12.5 * 48 + 2.5)
    assert [row["true"] for row in document["irreducible"]] == [0.18, 0.25]
    assert document["held_out"]["capacity"]["count"] == len(document["held_out"]["rows"]) == 24
    assert 0 < document["held_out"]["capacity"]["median_relative_error"] < 0.02
    assert {row["weight"] for row in document["effective_fractions"]} == {0.1, 0.3, 0.5, 0.7, 0.9, 1.0}
    assert any("broken failed" in warning for warning in document["warnings"])


def test_page_holds_each_kind_of_figure_once(report: tuple[str, dict[str, Any]]) -> None:
    figures = re.findall(r"<figure.*?</figure>", report[0], flags=re.DOTALL)
    assert [heading for figure in figures for heading in headings(figure)] == [
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


def test_page_fetches_nothing(report: tuple[str, dict[str, Any]]) -> None:
    page = report[0]
    assert re.findall(r"url\((?!#)|@import|\bfetch\(|\bimport\(|XMLHttpRequest|<link|<iframe", page) == []
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a namespace, not an address


def test_contents_lead_to_headings(report: tuple[str, dict[str, Any]]) -> None:
    targets = re.findall(r'href="#([^"]+)"', report[0])
    names = re.findall(r'\bid="([^"]+)"', report[0])
    assert len(targets) > 15
    assert set(targets) <= set(names)
    assert len(names) == len(set(names))


def test_the_same_study_gives_the_same_report(report: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    assert build(small_table(), tmp_path) == report


def test_tables_say_what_the_document_says(report: tuple[str, dict[str, Any]]) -> None:
    page, document = report
    advice = document["recommendation"]
    rows = list(cells(page, "recommended-mixture"))
    assert [row[0] for row in rows] == list(advice["weights"])
    assert [row[2] for row in rows] == [f"{weight:.1%}" for weight in advice["weights"].values()]
    assert [row[1] for row in cells(page, "laws-by-what-the-mixture-acts-through")] == [
        law["label"] for law in document["comparison"]["laws"]
    ]
    assert html.escape(document["comparison"]["verdict"], quote=False) in page
    assert len(list(cells(page, "intervals-by-method-one-by-one"))) == len(document["intervals"])
    runs = document["design"]["runs"]
    expected = [f"{1 - run['share']:.1%}" for run in runs]
    assert [row[3] for row in cells(page, "runs-to-train-next-in-order")] == expected


def test_a_table_of_one_task_without_extras_has_a_report(study_table: pd.DataFrame, tmp_path: Path) -> None:
    plain = study_table[(study_table["task"] == "en-de") & (study_table["metric"] == "loss")]
    plain = plain[plain["role"] == "fit"][["size", "task", "weight", "metric", "value"]]
    page, document = build(plain, tmp_path / "report")
    assert "Choose a size" not in page
    assert "<script" not in page
    assert document["held_out"]["capacity"]["median_relative_error"] is None
    assert document["wall_seconds"] is None
    assert document["irreducible"] == []


def test_a_rising_metric_has_a_report(tmp_path: Path) -> None:
    table = small_table()
    page, document = build(table[table["metric"] == "chrf"], tmp_path, metric="chrf")
    assert document["unit"] == "points"
    assert document["irreducible"] == []
    assert "highest chrf" in page


def test_names_cannot_inject_markup(tmp_path: Path) -> None:
    table = small_table()
    table = table[table["metric"].eq("loss") & table["testset"].eq("test")].drop(columns="mixture")
    renamed = table.replace({"task": {"aa": "</script><b>de"}})
    page, _ = build(renamed, tmp_path / "report")
    assert "<b>de" not in page


@pytest.fixture(scope="module")
def wild_table() -> pd.DataFrame:
    """Losses that lie far from any law."""
    table = small_table()
    table = table[table["metric"].eq("loss") & table["testset"].eq("test")]
    return table.assign(value=table["value"] * np.random.default_rng(0).normal(1, 0.06, len(table)))


def test_scatter_beyond_the_stated_noise_is_reported(
    report: tuple[str, dict[str, Any]], wild_table: pd.DataFrame, tmp_path: Path
) -> None:
    stated = "standard deviations assume 1.0% noise and are too small"
    assert not any(stated in warning for warning in report[1]["warnings"])
    build_report(wild_table, out=tmp_path, uncertainty=Perturbation(refits=0))
    document = json.loads((tmp_path / "report.json").read_text())
    assert any(stated in warning for warning in document["warnings"])
    assert 0.03 < document["scatter"] < 0.1
    assert {parameter["std"] for parameter in document["fits"]["joint"]["parameters"]} == {None}


def test_only_stated_noise_can_be_too_small(wild_table: pd.DataFrame, tmp_path: Path) -> None:
    written = build_report(wild_table, out=tmp_path, uncertainty=ResidualBootstrap(refits=0))
    assert not any("noise" in warning for warning in written.warnings)


def test_corrected_values_carry_a_dagger(analysis: Analysis) -> None:
    frame = analysis.observations.frame
    chosen = frame["size"].eq(SIZES[-1]) & frame["weight"].eq(0.1)
    marked = replace(analysis.observations, frame=frame.assign(corrected=chosen))
    asked = replace(analysis, observations=marked)
    page = render_page(asked, draw_figures(asked))
    rows = list(cells(page, "held-out-models-one-by-one"))
    daggered = [row for row in rows if row[4].endswith(" †")]
    assert [(row[0], row[1], row[2]) for row in daggered] == [("aa", "160K", "0.1")]
    assert "† corrected for convergence." in page
    plain = render_page(analysis, draw_figures(analysis))
    assert "†" not in plain


def test_runs_read_at_a_horizon_have_learning_curves(tmp_path: Path) -> None:
    final = small_table()
    final = final[final["metric"].eq("loss") & final["testset"].eq("test")]
    steps = (200, 400, 600, 1000, 1600, 2400, 3200, 6400)
    table = pd.concat(
        [final.assign(step=step, value=final["value"] * (1 + 20 / step**0.8)) for step in steps]
    )
    short = table["size"].eq(SIZES[-1]) & table["weight"].eq(0.1)
    page, document = build(table[~short | table["step"].le(3200)], tmp_path, horizon=6400)
    assert {row["task"] for row in document["corrected"]} == {"aa"}
    assert "Learning curves" in headings(page)
    rows = list(cells(page, "learning-curves-one-by-one"))
    assert [row[5].endswith(" †") for row in rows] == [True]


def test_models_of_more_tasks_have_a_figure_and_a_table(tmp_path: Path) -> None:
    laws = {**LAWS, "cc": LAWS["aa"]}
    pairs = [("aa", "bb"), ("aa", "cc"), ("bb", "cc")]
    mixtures = [{task: 1.0} for task in laws]
    mixtures += [{one: p, two: 1 - p} for one, two in pairs for p in (0.25, 0.5, 0.75)]
    mixtures.append({"aa": 0.25, "bb": 0.25, "cc": 0.5})
    table = simulate(laws, sizes=SIZES[:4], mixtures=mixtures, noise=0.003)
    page, document = build(table, tmp_path)
    assert "Models of more tasks" in headings(page)
    rows = list(cells(page, "models-of-more-tasks-one-by-one"))
    assert len(rows) == len(document["more_tasks"]) == 3 * 4
    assert {row[2] for row in rows} == {"aa:0.25 bb:0.25 cc:0.5"}
