"""The report: one page that needs nothing else, and the same numbers as JSON."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import Perturbation, build_report, fit, read_table, select
from mnmt_laws.parameters import fit_document

FEW = Perturbation(refits=5)


def build(source: object, out: Path, **options: object) -> tuple[str, dict]:  # type: ignore[type-arg]
    build_report(source, out=out, perturbation=FEW, **options)  # type: ignore[arg-type]
    document = json.loads((out / "report.json").read_text())
    return (out / "index.html").read_text(), document


def test_page_is_self_contained_and_holds_every_figure(study_records: Path, tmp_path: Path) -> None:
    page, _ = build(study_records, tmp_path / "report")
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert "url(" not in page
    assert "<script" not in page
    # losses, parallels, coefficients and fractions a task; frontier; held out; chrF against loss
    assert len(sources) == 4 * 2 + 1 + 1 + 1
    panels = [base64.b64decode(source.partition(",")[2]) for source in sources]
    for panel in panels:
        assert ElementTree.fromstring(panel).tag == "{http://www.w3.org/2000/svg}svg"
    figures = [path.read_bytes() for path in (tmp_path / "report" / "figures").glob("*.svg")]
    assert sorted(figures) == sorted(panels)
    headings = re.findall(r"<h2[^>]*>([^<]+)</h2>", page)
    for heading in ("What was found", "Losses and laws", "Trade-off frontier", "Held-out models", "Runs"):
        assert heading in headings
    assert "loss became NaN at step 12" in page


def test_json_agrees_with_fit_and_the_table(
    study_records: Path, study_table: pd.DataFrame, tmp_path: Path
) -> None:
    _, document = build(study_records, tmp_path / "report")
    fitted = fit(select(read_table(tmp_path / "report" / "runs.csv")), law="joint", perturbation=FEW)
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
    assert "Trade-off frontier" not in page
    assert document["held_out"]["capacity"]["median_relative_error"] is None
    assert document["wall_seconds"] is None
    assert document["irreducible"] == []


def test_a_rising_metric_has_a_report(study_table: pd.DataFrame, tmp_path: Path) -> None:
    _, document = build(study_table, tmp_path / "report", metric="chrf")
    assert document["unit"] == "points"
    assert document["irreducible"] == []


def test_names_cannot_inject_markup(study_table: pd.DataFrame, tmp_path: Path) -> None:
    renamed = study_table.replace({"task": {"en-de": "<b>de"}}).drop(columns="mixture")
    page, _ = build(renamed, tmp_path / "report")
    assert "<b>de" not in page


def test_no_refits_leave_uncertainty_unknown(study_table: pd.DataFrame, tmp_path: Path) -> None:
    build_report(study_table, out=tmp_path, perturbation=Perturbation(refits=0))
    document = json.loads((tmp_path / "report.json").read_text())
    assert {parameter["std"] for parameter in document["fits"]["joint"]["parameters"]} == {None}


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
