"""`mnmt-eval report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_eval.cli.options import (
    DEFAULT_METRIC_FLAGS,
    DEFAULT_TEXT_FLAGS,
    Flag,
    MetricFlags,
    Systems,
    TextFlags,
)
from mnmt_eval.errors import EvalError


def report(
    systems: Systems,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    text: TextFlags = DEFAULT_TEXT_FLAGS,
    baseline: str | None = None,
    metrics: MetricFlags = DEFAULT_METRIC_FLAGS,
    by: str | None = None,
    losses: Flag = False,
    worst_by: str = "chrf",
    sentences: int = 1000,
) -> None:
    """Write a page to send around: scores with significance, and translations to read.

    Args:
        systems: Files with a translation a line, whatever made them; runs that `mnmt-eval score` has scored;
            folders of either; or a folder of WMT's submissions. `NAME=FILE` gives a system a name.
        text: The text that they translated.
        out: Folder for the page, index.html.
        baseline: The system that others are tested against, and read beside; by default the first.
        metrics: Metrics and their options.
        by: Score and test groups of sentences apart, and filter by them: `origin` (which side was written
            first), `length`, or `eighths` or `thirds` of the sentences by length.
        losses: Compare the losses of runs too, on the references of their data; each loads its model.
        worst_by: The metric that sentences are sorted by; `loss` with --losses.
        sentences: Sentences of each text: those on which systems disagree most, or that one translated worst.
    """
    # Imported here, since `--help` needs no numbers.
    from mnmt_eval.report import ReportConfig, make_report, write_report

    translated = text.open(systems)
    if other := next((each for each in translated if each.names != translated[0].names), None):
        first = translated[0].text.name
        raise EvalError(f"{other.text.name}: has other systems than {first}; name a pair with --task.")
    config = ReportConfig(
        metrics=metrics.metric_set,
        worst_by=worst_by,
        sentences=sentences,
        baseline=baseline,
        grouping=by,
        losses=losses,
    )
    print(write_report(make_report(translated, config), out))
