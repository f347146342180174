"""Columns of text, aligned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mnmt_eval.analysis.correlation import Interval
from mnmt_eval.analysis.multilingual import ResourceScore
from mnmt_eval.analysis.run_analysis import Analyses, RunAnalysis
from mnmt_eval.compare.comparison import Comparison, MetricComparison, SystemScore, by_value
from mnmt_eval.metrics.metric import decimals, shown, titled


def aligned(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines with the cells of equally long columns, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


SIGNIFICANT = 0.05
"""p-values below this have a star."""


def comparison_table(comparison: Comparison) -> str:
    """The systems side by side, with what the numbers mean below them."""
    lines = [f"{comparison.testset} {comparison.task}, {comparison.sentences:,} sentences", ""]
    names = [score.system for score in comparison.metrics[0].scores]
    columns = [["", *_marked(names, comparison.baseline)]]
    columns += [
        [titled(m.metric), *(_cell(score, m.metric) for score in m.scores)] for m in comparison.metrics
    ]
    lines += [*aligned(columns), ""]
    for m in comparison.metrics:
        if m.scores[0].groups:
            lines += [*aligned(_group_columns(m, names)), ""]
    return "\n".join([*lines, *_legend(comparison)])


def _marked(names: Sequence[str], baseline: str | None) -> list[str]:
    return [f"{name} (baseline)" if name == baseline else name for name in names]


def _cell(score: SystemScore, metric: str) -> str:
    lower, upper = shown(score.lower, metric), shown(score.upper, metric)
    cell = f"{shown(score.value, metric)} [{lower}, {upper}]"
    if score.test is None:
        return cell
    star = " *" if score.test.p_value < SIGNIFICANT else ""
    return f"{cell} {shown(score.test.difference, metric, sign='+')} p={score.test.p_value:.4f}{star}"


def _group_columns(m: MetricComparison, names: Sequence[str]) -> list[list[str]]:
    """A column a group: its number of sentences in the head, then the systems' values."""
    heads = [f"{group.group} ({group.sentences:,})" for group in m.scores[0].groups]
    values = [
        [shown(score.groups[place].value, m.metric) for score in m.scores] for place in range(len(heads))
    ]
    return [[m.metric, *names], *([head, *column] for head, column in zip(heads, values, strict=True))]


def _legend(comparison: Comparison) -> Iterator[str]:
    how = comparison.comparing
    yield f"[95% interval of {how.samples:,} bootstrap samples, seed {how.seed}]"
    if comparison.baseline is not None:
        yield f"difference from the baseline, with p of a paired {how.test} test; * p < {SIGNIFICANT}"
    for m in comparison.metrics:
        yield from _named(m.metric, m.signatures)
    yield from _named("search", by_value(comparison.searches))


def _named(what: str, signatures: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A line a signature, with the systems that it is of if there are several."""
    for signature, systems in signatures.items():
        whose = f" of {', '.join(systems)}" if len(signatures) > 1 else ""
        yield f"{what}{whose}: {signature}"


_RESOURCES = ("High", "Med", "Low", "All")


def analyses_table(analyses: Analyses) -> str:
    """The analyses that the runs allow, one below the other."""
    sections = [_resources, _zero_shot, _transfer, _cost, _against_loss, _differing]
    found = [lines for section in sections if (lines := list(section(analyses)))]
    return "\n\n".join("\n".join(lines) for lines in found)


def _resources(analyses: Analyses) -> Iterator[str]:
    metric = titled(analyses.metric)
    yield f"{metric} on {analyses.testset}, means over tasks by training pairs (number of tasks)"
    yield from _resource_rows([(run.run, run.resources) for run in analyses.runs], analyses.metric)


def _transfer(analyses: Analyses) -> Iterator[str]:
    runs = [run for run in analyses.runs if run.transfer]
    if runs:
        yield f"transfer: {titled(analyses.metric)} less the baseline's"
        yield from _resource_rows([(run.run, run.transfer_by_resource) for run in runs], analyses.metric)
        yield ""
        yield from aligned(list(_transfer_columns(runs, analyses.metric)))


def _transfer_columns(runs: Sequence[RunAnalysis], metric: str) -> Iterator[list[str]]:
    tasks = dict.fromkeys(made.task for run in runs for made in run.transfer)
    yield ["", *(run.run for run in runs)]
    for task in tasks:
        differences = [{made.task: made.difference for made in run.transfer} for run in runs]
        yield [task, *(shown(own[task], metric, sign="+") if task in own else "" for own in differences)]


def _resource_rows(rows: Sequence[tuple[str, Sequence[ResourceScore]]], metric: str) -> Iterator[str]:
    columns = [["", *(name for name, _ in rows)]]
    for group in _RESOURCES:
        found = [{score.group: score for score in scores}.get(group) for _, scores in rows]
        if any(found):
            cells = [
                "" if score is None else f"{shown(score.value, metric)} ({len(score.tasks)})"
                for score in found
            ]
            columns.append([group, *cells])
    return aligned(columns)


def _zero_shot(analyses: Analyses) -> Iterator[str]:
    found = [(run.run, run.zero_shot) for run in analyses.runs if run.zero_shot is not None]
    if found:
        yield "zero-shot: mean over directions without training pairs"
        accuracies = [z.mean_language_accuracy for _, z in found]
        yield from aligned(
            [
                ["", *(name for name, _ in found)],
                ["directions", *(str(len(z.directions)) for _, z in found)],
                [analyses.metric, *(shown(z.mean_value, analyses.metric) for _, z in found)],
                ["right language", *("not measured" if a is None else f"{a:.1f}%" for a in accuracies)],
            ]
        )


def _cost(analyses: Analyses) -> Iterator[str]:
    if analyses.cost:
        yield f"quality against cost; * no other run is as good for less {analyses.cost_unit}"
        yield from aligned(
            [
                ["", *(row.name for row in analyses.cost)],
                [analyses.metric, *(shown(row.value, analyses.metric) for row in analyses.cost)],
                ["Δ", *(shown(row.difference, analyses.metric, sign="+") for row in analyses.cost)],
                [analyses.cost_unit, *(f"{row.cost:.3g}" for row in analyses.cost)],
                ["", *("*" if row.efficient else "" for row in analyses.cost)],
            ]
        )


def _against_loss(analyses: Analyses) -> Iterator[str]:
    if analyses.against_loss:
        lines, digits = analyses.against_loss, decimals(analyses.metric)
        columns = {
            "runs": [str(line.count) for line in lines.values()],
            "slope": [_with(line.slope, line.slope_interval, digits) for line in lines.values()],
            "intercept": [_with(line.intercept, line.intercept_interval, digits) for line in lines.values()],
            "r": [_with(line.correlation, line.correlation_interval, 3) for line in lines.values()],
        }
        yield f"{analyses.metric} = intercept + slope · loss [95% interval over runs]"
        yield from aligned([["", *lines], *([head, *cells] for head, cells in columns.items())])


def _differing(analyses: Analyses) -> Iterator[str]:
    if analyses.differing:
        yield "not measured in one way, so not to be compared; score all runs with the same options"
        for task, signatures in analyses.differing.items():
            yield from (f"{task}: {signature}" for signature in signatures)


def _with(value: float, interval: Interval, digits: int) -> str:
    return f"{value:.{digits}f} [{interval.lower:.{digits}f}, {interval.upper:.{digits}f}]"
