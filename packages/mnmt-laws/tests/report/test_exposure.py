"""Exposure in the report: one length has coefficients over the weight, several have more."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from mnmt_laws import Observations, Perturbation
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.document import report_document
from mnmt_laws.report.exposure import Exposure, answer_exposure, transfer_table
from mnmt_laws.report.figures import draw_figures
from mnmt_laws.report.findings import report_findings
from mnmt_laws.report.tables import report_tables


@pytest.fixture(scope="module")
def observations(length_analysis: Analysis) -> Observations:
    """Two tasks trained for three lengths, alone too."""
    observations = length_analysis.observations
    alone = observations.frame[observations.frame["weight"] == 0.5].assign(weight=1.0)
    alone = alone.assign(
        value=0.98 * alone["value"], mixture=alone["task"] + ":1.0", tokens=alone["tokens"] / 2
    )
    return replace(observations, frame=pd.concat([observations.frame, alone], ignore_index=True))


@pytest.fixture(scope="module")
def exposure(observations: Observations) -> Exposure:
    return answer_exposure(observations, Perturbation(refits=3))


def test_several_lengths_have_findings_figures_a_table_and_rows(
    length_analysis: Analysis, exposure: Exposure
) -> None:
    analysis = replace(length_analysis, exposure=exposure)
    findings = report_findings(analysis)
    assert any("follows" in finding for finding in findings)
    assert any("At equal exposure, beside other tasks less alone" in finding for finding in findings)
    titles = [group.title for group in draw_figures(analysis)]
    assert "Coefficients over weight and exposure" in titles
    table = next(table for table in report_tables(analysis) if table.title == "Transfer at equal exposure")
    assert {row[0] for row in table.rows} == {"aa", "bb"}
    document = json.loads(json.dumps(report_document(analysis)["exposure"], allow_nan=False))
    assert document["limits"] == "zero"
    assert len(document["curves"]) == len(document["curves_free"])
    assert [test["task"] for test in document["tests"]] == ["aa", "bb", "all tasks"]


def test_one_length_has_coefficients_over_the_weight_only(loss_analysis: Analysis) -> None:
    exposure = loss_analysis.exposure
    assert exposure is not None
    assert exposure.findings == ()
    assert exposure.free is None
    titles = [group.title for group in draw_figures(loss_analysis)]
    assert "Coefficients over the weight" in titles
    assert "Effective share by size" in titles
    assert not transfer_table(exposure).rows


def test_a_rising_metric_has_no_exponents(chrf_analysis: Analysis) -> None:
    exposure = chrf_analysis.exposure
    assert exposure is not None
    assert exposure.exponents is None
    assert report_document(chrf_analysis)["exposure"]["curves"] is None
