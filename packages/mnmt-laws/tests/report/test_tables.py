"""Tables say what the document says."""

from __future__ import annotations

import html
from typing import Any

from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.document import report_document


def test_tables_say_what_the_document_says(loss_analysis: Analysis, page: Any) -> None:
    document = report_document(loss_analysis)
    advice = document["recommendation"]
    rows = page.cells("recommended-mixture")
    assert [row[0] for row in rows] == list(advice["weights"])
    assert [row[2] for row in rows] == [f"{weight:.1%}" for weight in advice["weights"].values()]
    assert [row[1] for row in page.cells("laws-by-what-the-mixture-acts-through")] == [
        law["label"] for law in document["comparison"]["laws"]
    ]
    assert html.escape(document["comparison"]["verdict"], quote=False) in page.text
