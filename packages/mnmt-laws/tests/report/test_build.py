"""The folder of a report: one page that needs nothing else, and the same numbers as JSON."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

from mnmt_laws import Perturbation, build_report, fit
from mnmt_laws.fitting.parameters import fit_document
from mnmt_laws.report.analysis import Analysis

FEW = Perturbation(refits=10)

Analyse = Callable[..., Analysis]
Write = Callable[[Analysis, pd.DataFrame], Any]


def test_records_become_a_page_and_a_document(study_records: Path, tmp_path: Path) -> None:
    written = build_report(study_records, out=tmp_path / "report", uncertainty=FEW)
    page = written.index.read_text()
    document = json.loads(written.index.with_name("report.json").read_text())
    sources = re.findall(r'src="([^"]*)"', page)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    panels = [base64.b64decode(source.partition(",")[2]) for source in sources]
    for panel in panels:
        assert ElementTree.fromstring(panel).tag == "{http://www.w3.org/2000/svg}svg"
    figures = [path.read_bytes() for path in (tmp_path / "report" / "figures").glob("*.svg")]
    assert sorted(figures) == sorted(panels)
    expected = {"What was found", "Losses and laws", "Choose a size and weights", "Held-out models", "Runs"}
    assert expected <= set(re.findall(r"<h2[^>]*>([^<]+)</h2>", page))
    assert "loss became NaN at step 12" in page
    fitted = fit(tmp_path / "report" / "runs.csv", law="joint", uncertainty=FEW)
    assert document["fits"]["joint"] == fit_document(fitted)
    assert document["tasks"] == ["en-de", "en-zh"]
    assert {run["run"]: run["wall_seconds"] for run in document["runs"]}["broken"] == 2.5
    assert document["wall_seconds"] == pytest.approx(12.5 * 48 + 2.5)
    assert [row["true"] for row in document["irreducible"]] == [0.18, 0.25]
    assert document["held_out"]["capacity"]["count"] == len(document["held_out"]["rows"]) == 24
    assert 0 < document["held_out"]["capacity"]["median_relative_error"] < 0.02
    assert {row["weight"] for row in document["effective_fractions"]} == {0.1, 0.3, 0.5, 0.7, 0.9, 1.0}
    assert any("broken failed" in warning for warning in document["warnings"])


def test_the_same_study_gives_the_same_report(report: Any, small_table: pd.DataFrame, tmp_path: Path) -> None:
    again = build_report(small_table, out=tmp_path, uncertainty=FEW)
    for name in ("index.html", "report.json", "runs.csv"):
        assert again.index.with_name(name).read_bytes() == report.report.index.with_name(name).read_bytes()


def test_a_table_of_one_task_without_extras_has_a_report(
    losses: pd.DataFrame, analyse_table: Analyse, write: Write
) -> None:
    plain = losses[losses["task"].eq("aa") & losses["role"].eq("fit")]
    plain = plain[["size", "task", "weight", "metric", "value"]]
    written = write(analyse_table(plain, uncertainty=Perturbation(refits=0)), plain)
    assert "Choose a size" not in written.page
    assert "<script" not in written.page
    document = written.document
    assert document["held_out"]["capacity"]["median_relative_error"] is None
    assert document["wall_seconds"] is None
    assert document["irreducible"] == []
    assert {parameter["std"] for parameter in document["fits"]["joint"]["parameters"]} == {None}


def test_a_rising_metric_has_a_report(
    chrf_analysis: Analysis, small_table: pd.DataFrame, write: Write
) -> None:
    written = write(chrf_analysis, small_table)
    assert written.document["unit"] == "points"
    assert written.document["irreducible"] == []
    assert "highest chrf" in written.page


def test_runs_read_at_a_horizon_have_learning_curves(
    losses: pd.DataFrame, analyse_table: Analyse, write: Write
) -> None:
    steps = (200, 400, 600, 1000, 1600, 2400, 3200, 6400)
    table = pd.concat(
        [losses.assign(step=step, value=losses["value"] * (1 + 20 / step**0.8)) for step in steps]
    )
    short = table["size"].eq(table["size"].max()) & table["weight"].eq(0.1)
    table = table[~short | table["step"].le(3200)]
    written = write(analyse_table(table, horizon=6400, uncertainty=Perturbation(refits=0)), table)
    assert {row["task"] for row in written.document["corrected"]} == {"aa"}
    assert "Learning curves" in written.headings
    rows = written.cells("learning-curves-one-by-one")
    assert [row[5].endswith(" †") for row in rows] == [True]


def test_models_of_more_tasks_have_a_figure_and_a_table(
    three_analysis: Analysis, three_table: pd.DataFrame, write: Write
) -> None:
    written = write(three_analysis, three_table)
    assert "Models of more tasks" in written.headings
    rows = written.cells("models-of-more-tasks-one-by-one")
    assert len(rows) == len(written.document["more_tasks"]) == 3 * 4
    assert {row[2] for row in rows} == {"aa:0.25 bb:0.25 cc:0.5"}
