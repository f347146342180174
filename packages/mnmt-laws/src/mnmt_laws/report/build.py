"""Write the report of a study."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from mnmt_laws.fitting.uncertainty import ResidualBootstrap, Uncertainty
from mnmt_laws.report.analysis import Analysis, Progress, analyse, no_progress
from mnmt_laws.report.document import report_document
from mnmt_laws.report.figures import FigureGroup, draw_figures
from mnmt_laws.report.findings import report_findings
from mnmt_laws.report.first_screen import make_advice
from mnmt_laws.report.page import render_page
from mnmt_laws.tables.source import Source, TableSource, observe, open_source
from mnmt_laws.tables.table import RunTable


@dataclass(frozen=True, kw_only=True)
class Report:
    """A written report."""

    index: Path
    """The page; `report.json`, `runs.csv` and the folder `figures` lie beside it."""

    headline: str
    """The advice in a sentence."""

    findings: tuple[str, ...]
    """The findings, in sentences."""

    warnings: tuple[str, ...]
    """What was left out, and what the data do not determine."""


def build_report(
    source: TableSource | Source,
    *,
    out: str | Path,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    horizon: float | None = None,
    objective: str = "log-ols",
    uncertainty: Uncertainty | None = None,
    overlay: Sequence[TableSource] = (),
    fast: bool = False,
    progress: Progress = no_progress,
) -> Report:
    """Analyse a run table or a folder of run records, and write the report.

    The folder then holds index.html, report.json, runs.csv and the figures.

    Args:
        source: Path of a run table or of a folder of run records, or a frame or a run table.
        out: Folder to write; it is created if it does not exist.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.
        horizon: Steps at which runs that have not converged are read; by default all stay as they are.
        objective: As in `fit`.
        uncertainty: As in `fit`.
        overlay: Tables of published losses, drawn as faint points among the losses.
        fast: Whether to write a first page within seconds: without refits and so without intervals, without
            rival laws, with few figures, and with none as files.
        progress: Called with the name of each stage as it begins.

    Raises:
        TableError: If the source cannot be read or no law can be fitted to it.
    """
    opened = source if isinstance(source, Source) else open_source(source)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    analysis = analyse(
        opened,
        metric=metric,
        testset=testset,
        architecture=architecture,
        horizon=horizon,
        objective=objective,
        uncertainty=uncertainty or ResidualBootstrap(),
        fast=fast,
        progress=progress,
    )
    progress("draw the figures and write the page")
    return write_report(analysis, opened.table, folder, overlay=read_overlay(overlay), fast=fast)


def write_report(
    analysis: Analysis,
    table: RunTable,
    folder: Path,
    *,
    overlay: pd.DataFrame | None = None,
    fast: bool = False,
) -> Report:
    """Write an analysis and the run table that it is of to a folder that exists.

    Args:
        analysis: What the report says.
        table: The run table.
        folder: Where to write.
        overlay: As in `draw_figures`.
        fast: Whether to draw few figures, and none as files.
    """
    document = json.dumps(report_document(analysis), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "report.json").write_text(document + "\n", encoding="utf-8")
    table.frame.drop(columns="row").to_csv(folder / "runs.csv", index=False)
    groups = draw_figures(analysis, overlay=overlay, fast=fast)
    if not fast:
        _write_figures(groups, folder / "figures")
    index = folder / "index.html"
    index.write_text(render_page(analysis, groups), encoding="utf-8")
    return Report(
        index=index,
        headline=make_advice(analysis).headline,
        findings=report_findings(analysis),
        warnings=analysis.warnings,
    )


def read_overlay(tables: Sequence[TableSource]) -> pd.DataFrame | None:
    """Return the losses of published tables: `task`, `size`, `value` and `label`, the table's name."""
    parts = []
    for table in tables:
        frame = observe(table).frame
        label = Path(table).stem if isinstance(table, str | Path) else "published"
        parts.append(frame[["task", "size", "value"]].assign(label=label))
    return pd.concat(parts, ignore_index=True) if parts else None


def _write_figures(groups: Sequence[FigureGroup], folder: Path) -> None:
    """Write every panel of the page as a file."""
    folder.mkdir(exist_ok=True)
    for group in groups:
        for name, panel in group.files().items():
            (folder / name).write_bytes(panel)
