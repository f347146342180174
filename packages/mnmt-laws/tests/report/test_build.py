"""The folder of a report: one page that needs nothing else, and the same numbers as JSON."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from mnmt_laws import Perturbation, build_report, fit
from mnmt_laws.fitting.parameters import fit_document

NONE = Perturbation(refits=0)
FEW = Perturbation(refits=3)


@pytest.mark.slow
def test_records_become_a_page_and_a_document(study_records: Path, tmp_path: Path) -> None:
    written = build_report(study_records, out=tmp_path / "report", uncertainty=FEW)
    page = written.index.read_text()
    document = json.loads(written.index.with_name("report.json").read_text())
    for figure in (tmp_path / "report" / "figures").glob("*.svg"):
        assert ElementTree.parse(figure).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    titles = set(re.findall(r"<(?:h2|summary)[^>]*>([^<]+)<", page))
    assert {"Findings", "Losses and laws", "Explore", "Held-out models", "Runs"} <= titles
    assert "loss became NaN at step 12" in page
    fitted = fit(tmp_path / "report" / "runs.csv", law="joint", uncertainty=FEW)
    assert document["fits"]["joint"] == fit_document(fitted)
    assert document["tasks"] == ["en-de", "en-zh"]
    assert {run["run"]: run["wall_seconds"] for run in document["runs"]}["broken"] == 2.5
    assert document["wall_seconds"] == pytest.approx(12.5 * 48 + 2.5)
    assert [row["true"] for row in document["irreducible"]] == [0.18, 0.25]
    assert document["held_out"]["count"] == len(document["held_out"]["rows"]) == 24
    assert 0 < document["held_out"]["median_relative_error"] < 0.02
    assert {row["weight"] for row in document["effective_fractions"]} == {0.1, 0.3, 0.5, 0.7, 0.9, 1.0}
    assert any("broken failed" in warning for warning in document["warnings"])


@pytest.mark.slow
def test_the_same_study_gives_the_same_report(one_task: pd.DataFrame, tmp_path: Path) -> None:
    one, two = (build_report(one_task, out=tmp_path / name, uncertainty=FEW) for name in ("one", "two"))
    for name in ("index.html", "report.json", "runs.csv"):
        assert one.index.with_name(name).read_bytes() == two.index.with_name(name).read_bytes()


@pytest.mark.slow
def test_a_table_without_extras_has_a_report(one_task: pd.DataFrame, tmp_path: Path) -> None:
    plain = one_task[one_task["role"].eq("fit")][["size", "task", "weight", "metric", "value"]]
    index = build_report(plain, out=tmp_path / "report", uncertainty=NONE).index
    page, document = index.read_text(), json.loads(index.with_name("report.json").read_text())
    assert "needs no mixture" in page
    assert document["held_out"]["median_relative_error"] is None
    assert document["wall_seconds"] is None
    assert document["irreducible"] == []
    assert {parameter["std"] for parameter in document["fits"][document["law"]]["parameters"]} == {None}


@pytest.mark.slow
def test_without_its_extra_a_report_has_all_but_images_and_says_so(
    one_task: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = one_task[one_task["role"].eq("fit")][["size", "task", "weight", "metric", "value"]]
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    written = build_report(plain, out=tmp_path / "report", uncertainty=NONE)
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        "index.html",
        "report.json",
        "runs.csv",
    }
    assert "mnmt-laws[svg]" in written.warnings[-1]
    assert written.index.read_text().count('<script src="https://') == 3
