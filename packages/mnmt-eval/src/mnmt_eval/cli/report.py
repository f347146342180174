"""`mnmt-eval report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_eval.cli.options import DEFAULT_METRIC_FLAGS, MetricFlags, Paths, Systems


def report(
    systems: Systems,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    reference: Paths = None,
    source: Path | None = None,
    task: str | None = None,
    testset: str = "test",
    baseline: str | None = None,
    metrics: MetricFlags = DEFAULT_METRIC_FLAGS,
    worst_by: str = "chrf",
    sentences: int = 1000,
) -> None:
    """Write a page to send around: scores with significance, and translations to read.

    Args:
        systems: Files with a translation a line, whatever made them; runs that `mnmt-eval score` has scored;
            or folders of runs. `NAME=FILE` gives a system a name.
        out: Folder for the page, index.html.
        reference: A file with a reference a line, or several; by default the references of the runs' data.
        source: A file with a source sentence a line.
        task: The language pair, such as `en-de`; for runs by default every pair.
        testset: The runs' test set.
        baseline: The system that others are tested against, and read beside; by default the first.
        metrics: Metrics and their options.
        worst_by: The metric that sentences are sorted by.
        sentences: Sentences of each text: those on which systems disagree most, or that one translated worst.
    """
    # Imported here, since `--help` needs no numbers.
    from mnmt_eval.compare import name_systems, open_systems
    from mnmt_eval.report import ReportConfig, make_report, write_report
    from mnmt_eval.runs.texts import text_files

    files = text_files(references=reference or (), source=source, task=task)
    translated = open_systems(name_systems(systems), testset=testset, task=task, files=files)
    config = ReportConfig(
        metrics=metrics.metric_set, worst_by=worst_by, sentences=sentences, baseline=baseline
    )
    print(write_report(make_report(translated, config), out))
