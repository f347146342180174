"""Tables say what the document says."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
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
    assert len(page.cells("intervals-by-method-one-by-one")) == len(document["intervals"])
    expected = [f"{1 - run['share']:.1%}" for run in document["design"]["runs"]]
    assert [row[3] for row in page.cells("runs-to-train-next-in-order")] == expected


def test_corrected_values_carry_a_dagger(
    loss_analysis: Analysis, page: Any, read_page: Callable[[Analysis], Any]
) -> None:
    frame = loss_analysis.observations.frame
    rows = frame["size"].eq(frame["size"].max()) & frame["weight"].eq(0.1)
    corrected = replace(loss_analysis.observations, frame=frame.assign(corrected=rows))
    corrected_page = read_page(replace(loss_analysis, observations=corrected))
    daggered = [row for row in corrected_page.cells("held-out-models-one-by-one") if row[4].endswith(" †")]
    assert [(row[0], row[1], row[2]) for row in daggered] == [("aa", "160K", "0.1")]
    assert "† corrected for convergence." in corrected_page.text
    assert "†" not in page.text
