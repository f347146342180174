"""The report as JSON."""

from __future__ import annotations

import json

from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.document import report_document


def test_a_metric_that_rises_has_points_and_no_known_limit(chrf_analysis: Analysis) -> None:
    document = json.loads(json.dumps(report_document(chrf_analysis), allow_nan=False))
    assert document["unit"] == "points"
    assert document["irreducible"] == []
