"""The report as JSON."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.questions import QUESTIONS

SCHEMA = 1
_NO_NUMBERS = ("losses", "fractions", "frontier", "quality")  # questions whose name is no key


def report_document(analysis: Analysis) -> dict[str, Any]:
    """Return every number of the report in the types of JSON; null where a number is unknown."""
    study = analysis.study
    observations = study.observations
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "software": f"mnmt-laws {version('mnmt-laws')}",
        "study": study.name,
        "source": observations.source,
        "metric": observations.metric,
        "unit": observations.unit,
        "testset": observations.testset,
        "law": study.law.law.name,
        "objective": study.law.objective,
        "scatter": study.law.scatter,
        "tasks": study.tasks,
        "sizes": study.sizes,
        "weights": sorted(observations.fit["weight"].unique().tolist()),
        "findings": list(analysis.findings),
        "warnings": list(analysis.warnings),
        **{name: None for name in QUESTIONS if name not in _NO_NUMBERS},
    }
    for answer in analysis.answers.values():
        document |= answer.document
    return document
