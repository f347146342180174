"""`mnmt-eval report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_eval.cli.options import NO_FLAGS, MetricFlags, app
from mnmt_eval.compare.systems import name_systems, open_systems
from mnmt_eval.report import Reporting, document, write_report
from mnmt_eval.runs.texts import text_files


@app.command
def report(
    systems: Annotated[list[str], Parameter(negative="")],
    /,
    *,
    out: Path,
    reference: Annotated[list[Path] | None, Parameter(negative="", consume_multiple=True)] = None,
    source: Path | None = None,
    pair: str | None = None,
    testset: str = "test",
    metric: MetricFlags = NO_FLAGS,
    worst_by: str = "chrf",
    sentences: int = 200,
) -> None:
    """Write a page to read translations in, with sources and references, worst cases first.

    Systems are files with a translation a line, or runs that `mnmt-eval score` has measured.
    `NAME=FILE` gives one a name.

    Args:
        systems: Files, runs, or folders of runs.
        out: Folder for the page, index.html.
        reference: A file with a reference a line, or several; by default the references of the runs' data.
        source: A file with a source sentence a line.
        pair: The language pair, such as `en-de`; of runs all pairs by default.
        testset: The runs' test set.
        metric: Metrics and their options.
        worst_by: The metric that says which translations are worst.
        sentences: Sentences of each text: those that some system translated worst.
    """
    files = text_files(references=reference or (), source=source, pair=pair)
    opened = open_systems(name_systems(systems), testset=testset, pair=pair, files=files)
    reporting = Reporting(metrics=metric.choice, worst_by=worst_by, sentences=sentences)
    print(write_report(document(opened, reporting), out))
