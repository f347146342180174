"""Exposure in the report: one length has coefficients over the weight, several have more."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from mnmt_laws import Perturbation
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.questions.exposure import answer_exposure
from mnmt_laws.report.study import Study


@pytest.fixture(scope="module")
def study(length_analysis: Analysis) -> Study:
    """Two tasks trained for three lengths, alone too."""
    observations = length_analysis.study.observations
    alone = observations.frame[observations.frame["weight"] == 0.5].assign(weight=1.0)
    alone = alone.assign(
        value=0.98 * alone["value"], mixture=alone["task"] + ":1.0", tokens=alone["tokens"] / 2
    )
    both = replace(observations, frame=pd.concat([observations.frame, alone], ignore_index=True))
    return replace(length_analysis.study, observations=both, uncertainty=Perturbation(refits=3))


def test_several_lengths_have_findings_figures_a_table_and_rows(study: Study) -> None:
    answer = answer_exposure(study)
    assert any("follows" in finding for finding in answer.findings)
    assert any("At equal exposure, beside other tasks less alone" in finding for finding in answer.findings)
    assert "Coefficients over weight and exposure" in [group.title for group in answer.figures]
    (table,) = answer.tables
    assert {row[0] for row in table.rows} == {"aa", "bb"}
    document = json.loads(json.dumps(answer.document["exposure"], allow_nan=False))
    assert document["limits"] == "zero"
    assert len(document["curves"]) == len(document["curves_free"])
    assert [test["task"] for test in document["tests"]] == ["aa", "bb", "all tasks"]


def test_one_length_has_coefficients_over_the_weight_only(loss_analysis: Analysis) -> None:
    answer = loss_analysis.answers["exposure"]
    assert answer.findings == ()
    titles = [group.title for group in answer.figures]
    assert titles == ["Coefficients over the weight", "Effective share by size"]
    assert not answer.tables[0].rows


def test_a_rising_metric_has_no_exponents(chrf_analysis: Analysis) -> None:
    assert chrf_analysis.answers["exposure"].document["exposure"]["curves"] is None
