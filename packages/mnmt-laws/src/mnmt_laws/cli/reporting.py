"""`mnmt-laws report`: everything on one page."""

from __future__ import annotations

import logging
from pathlib import Path

from mnmt_laws.cli.options import (
    DEFAULT_FITTING,
    DEFAULT_READING,
    Fitting,
    Json,
    Reading,
    open_chosen,
)
from mnmt_laws.cli.output import print_json, warn
from mnmt_laws.report import build_report


def report(
    source: Path | None = None,
    *,
    out: Path | None = None,
    reading: Reading = DEFAULT_READING,
    fitting: Fitting = DEFAULT_FITTING,
    as_json: Json = False,
) -> None:
    """Write the report of a study: index.html, report.json, runs.csv and figures.

    Args:
        source: A run table, or a folder of run records.
        out: Folder to write; by default `report` beside the source.
        reading: What is analysed.
        fitting: How.
        as_json: Print JSON only: where the report is and what it found.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    folder = out or (Path("report") if source is None else source.resolve().parent / "report")
    written = build_report(
        open_chosen(source, reading),
        out=folder,
        metric=reading.metric,
        testset=reading.testset,
        architecture=reading.architecture,
        horizon=reading.horizon,
        objective=fitting.objective,
        uncertainty=fitting.method,
    )
    if as_json:
        print_json({"index": str(written.index), "findings": written.findings, "warnings": written.warnings})
        return
    print(f"{written.index}")
    for line in written.findings[:6]:
        print(f"- {line}")
    warn(written.warnings)
