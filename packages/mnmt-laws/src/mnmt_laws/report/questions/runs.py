"""The runs themselves: translation quality, status and effort."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mnmt_laws.answers.quality import pair_metrics, quality_lines, scores_of
from mnmt_laws.figures.quality import QUALITY_NAMES, draw_quality
from mnmt_laws.figures.style import format_size
from mnmt_laws.report.answer import Answer, FigureGroup, plain
from mnmt_laws.report.study import Study
from mnmt_laws.report.text import UNKNOWN, TextTable, format_duration
from mnmt_laws.sentences.quality import quality_sentence
from mnmt_laws.sentences.words import join
from mnmt_laws.tables.mixture import format_mixture

_KEYS = ("run", "status", "role", "size", "mixture", "seed", "wall_seconds", "error")


def answer_quality(study: Study) -> Answer:
    """Compare translation quality with loss, without zero-shot rows, whose losses are far larger."""
    table, observed = study.source.table, study.observations
    pairs = pair_metrics(
        table,
        loss=observed.metric if observed.is_loss else None,
        testset=observed.testset or None,
        architecture=study.architecture,
    )
    pairs = pairs if pairs.empty else pairs[pairs["weight"] > 0]
    scores = scores_of(pairs, rising=bool(table.rising))
    metrics = {name: QUALITY_NAMES.get(name, name) for name in scores if pairs[name].notna().any()}
    if not metrics:
        return Answer()
    names = join([*metrics.values()])
    figure = FigureGroup(
        "Translation quality against loss",
        f"{names} of every model against its loss, with a line for each task and its correlation r; "
        "zero-shot tasks are left out. The closer r is to −1, the more of what the laws say of loss "
        "carries over to translations.",
        lambda: [draw_quality(pairs, metric, quality_lines(pairs, metric)) for metric in metrics],
        folded=True,
    )
    return Answer(findings=(quality_sentence(pairs, metrics),), figures=(figure,))


def answer_runs(study: Study) -> Answer:
    """List the runs, and say what the answers rest on."""
    rows = (
        (
            record.run,
            record.status if record.error is None else f"{record.status}: {record.error}",
            record.role,
            format_size(record.size),
            format_mixture(record.mixture).replace(",", " "),
            UNKNOWN if record.wall_seconds is None else format_duration(record.wall_seconds),
        )
        for record in study.records
    )
    table = TextTable(
        title="Runs",
        note=_total(study),
        header=("run", "status", "role", "N", "mixture", "wall time"),
        rows=tuple(rows),
    )
    runs = [{key: getattr(record, key) for key in _KEYS} for record in study.records]
    return Answer(
        findings=(_effort(study),),
        tables=(table,),
        document=plain({"runs": runs, "wall_seconds": study.wall_seconds}),
    )


def _effort(study: Study) -> str:
    fitted = sorted(study.law.rows["size"].unique())
    smallest, largest = format_size(fitted[0]), format_size(fitted[-1])
    text = f"All this rests on {len(fitted)} fitted sizes ({smallest} to {largest} parameters)"
    text += f" and {len(study.law.rows)} fitted values"
    if study.records:
        failed = sum(record.status == "failed" for record in study.records)
        text += f" of {len(study.records)} runs ({failed} failed)"
    if math.isfinite(study.wall_seconds):
        text += f", {format_duration(study.wall_seconds)} of training"
    return text + "."


def _total(study: Study) -> str:
    statuses = [record.status for record in study.records]
    counts = ", ".join(f"{statuses.count(status)} {status}" for status in _sort_statuses(statuses))
    is_known = math.isfinite(study.wall_seconds)
    return f"{counts}; {format_duration(study.wall_seconds)} altogether." if is_known else f"{counts}."


def _sort_statuses(statuses: Iterable[str]) -> list[str]:
    return sorted(set(statuses), key=("finished", "failed", "interrupted", "running").index)
