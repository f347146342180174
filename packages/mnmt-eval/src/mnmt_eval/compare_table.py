"""A comparison as text: a row a system, a column a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mnmt_eval.comparing import Comparison, MetricComparison, SystemScore, by_value
from mnmt_eval.metrics.scale import shown, titled
from mnmt_eval.text_table import aligned

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
