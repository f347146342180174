"""The report as JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.document import report_document
from mnmt_laws.report.questions.predictions import answer_more_tasks


def test_a_metric_that_rises_has_points_and_no_known_limit(chrf_analysis: Analysis) -> None:
    document = json.loads(json.dumps(report_document(chrf_analysis), allow_nan=False))
    assert document["unit"] == "points"
    assert document["irreducible"] == []


def test_test_sets_have_their_fractions(loss_analysis: Analysis) -> None:
    testsets = report_document(loss_analysis)["testsets"]
    assert list(testsets) == ["news", "test"]
    expected = loss_analysis.study.effective.fractions.value
    for row in testsets["test"]:
        own = expected.sel(task=row["task"], weight=row["weight"])
        assert row["value"] == pytest.approx(float(own), rel=1e-12)


def test_models_of_three_tasks_are_predicted(three_analysis: Analysis, loss_analysis: Analysis) -> None:
    rows = answer_more_tasks(three_analysis.study).document["more_tasks"]
    assert len(rows) == 3 * 4
    assert np.median([abs(row["error"]) for row in rows]) < 0.02
    assert report_document(loss_analysis)["more_tasks"] is None
