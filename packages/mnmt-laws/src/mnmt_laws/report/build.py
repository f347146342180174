"""Write the report of a study."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mnmt_laws.figures.style import can_render
from mnmt_laws.fitting.law_fit import PriorChoice
from mnmt_laws.fitting.uncertainty import ResidualBootstrap, Uncertainty
from mnmt_laws.report.analysis import Progress, analyse, no_progress
from mnmt_laws.report.answer import Answer, FigureGroup
from mnmt_laws.report.document import report_document
from mnmt_laws.report.first_screen import first_screen
from mnmt_laws.report.page import render_page
from mnmt_laws.tables.source import RunSource, TableSource, open_source

_NO_SVG = (
    "the page takes Vega, which draws its figures, from the network, and no figure is written as SVG: "
    'pip install "mnmt-laws[svg]" for both.'
)


@dataclass(frozen=True, kw_only=True)
class ReportSummary:
    """A written report."""

    index: Path
    """The page; `report.json`, `runs.csv` and, with the extra `svg`, the folder `figures` lie beside it."""

    headline: str
    """The advice in a sentence."""

    quality: str
    """Translation quality in a sentence; empty where it was not measured."""

    findings: tuple[str, ...]
    """The findings, in sentences."""

    warnings: tuple[str, ...]
    """A line for everything that was left out or is undetermined."""


def build_report(
    source: TableSource | RunSource,
    *,
    out: str | Path,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    objective: str = "log-ols",
    prior: PriorChoice = "auto",
    uncertainty: Uncertainty | None = None,
    preference: Mapping[str, float] | None = None,
    progress: Progress = no_progress,
) -> ReportSummary:
    """Analyse a run table or a folder of run records, and write the report.

    The folder then holds index.html, report.json, runs.csv and, with the extra `svg`, the figures.

    Args:
        source: Path of a run table or of a folder of run records, or a frame or a run table.
        out: Folder to write; it is created if it does not exist.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.
        objective: As in `fit`.
        prior: As in `fit`.
        uncertainty: As in `fit`.
        preference: The importance of each task's loss; by default the study's `[goal]`, or equal.
        progress: Called with the name of each stage as it begins.

    Raises:
        TableError: If the source cannot be read or no law can be fitted to it.
    """
    opened = source if isinstance(source, RunSource) else open_source(source)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    analysis = analyse(
        opened,
        metric=metric,
        testset=testset,
        architecture=architecture,
        objective=objective,
        prior=prior,
        uncertainty=uncertainty or ResidualBootstrap(),
        preference=preference,
        progress=progress,
    )
    progress("draw the figures and write the page")
    document = json.dumps(report_document(analysis), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "report.json").write_text(document + "\n", encoding="utf-8")
    opened.table.frame.drop(columns="row").to_csv(folder / "runs.csv", index=False)
    if can_render():
        _write_figures(analysis.figures, folder / "figures")
    index, screen = folder / "index.html", first_screen(analysis.study)
    index.write_text(render_page(analysis, screen), encoding="utf-8")
    return ReportSummary(
        index=index,
        headline=" ".join([screen.headline, *screen.sentences]),
        quality=" ".join(analysis.answers.get("quality", Answer()).findings),
        findings=analysis.findings,
        warnings=analysis.warnings if can_render() else (*analysis.warnings, _NO_SVG),
    )


def _write_figures(groups: Sequence[FigureGroup], folder: Path) -> None:
    """Write every panel of the page as a file."""
    folder.mkdir(exist_ok=True)
    for group in groups:
        for name, panel in group.files().items():
            (folder / name).write_bytes(panel)
