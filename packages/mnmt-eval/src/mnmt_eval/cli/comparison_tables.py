"""Tables of a comparison: systems ranked by each metric, all pairs of them, and groups of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mnmt_eval.cli.tables import align
from mnmt_eval.compare.averages import DirectionAverage, average_directions
from mnmt_eval.compare.comparison import (
    Estimate,
    GroupScore,
    MetricComparison,
    SystemScore,
    TextComparison,
    group_by_value,
)
from mnmt_eval.compare.config import SIGNIFICANT
from mnmt_eval.metrics.protocol import column_title, format_value
from mnmt_eval.metrics.resampling import ConfidenceInterval

_INTERVAL = "[95% interval]"


def comparison_table(comparison: TextComparison) -> str:
    """Format a comparison with a table for each metric, and explain the numbers below."""
    count = comparison.sentences
    lines = [f"{comparison.name}, {count:,} sentence{'s' * (count != 1)}", ""]
    for metric in comparison.metrics:
        lines += [*_ranking(metric, comparison.baseline), ""]
        if len(metric.scores) > 2:
            lines += [*_pairs(metric), ""]
        if metric.scores[0].groups:
            lines += [*_groups(metric), ""]
    return "\n".join([*lines, *_legend(comparison)])


def averages_table(comparisons: Sequence[TextComparison]) -> Iterator[str]:
    """Yield a table of means over tasks, out of English and into it apart, if there are several tasks."""
    if averages := average_directions(comparisons):
        yield "\n".join([*align(_average_columns(averages)), *_average_note(averages)])


def _average_note(averages: Sequence[DirectionAverage]) -> Iterator[str]:
    """Yield the test of the means, if there is one."""
    of_metric = [system for each in averages if each.metric == averages[0].metric for system in each.systems]
    if tests := sum(system.difference is not None for system in of_metric):
        yield f"p of a paired permutation test{_corrected(tests, 'means')}; * p < {SIGNIFICANT}"


def _average_columns(averages: Sequence[DirectionAverage]) -> list[list[str]]:
    rows = [(each, system) for each in averages for system in each.systems]
    names = [f"{each.direction} ({len(each.tasks)})" for each, _ in rows]
    columns = [
        ["mean over tasks", *names],
        ["system", *(system.system for _, system in rows)],
        ["metric", *(column_title(each.metric) for each, _ in rows)],
        [f"value {_INTERVAL}", *(_value(system.mean, each.metric) for each, system in rows)],
    ]
    if not any(system.difference for _, system in rows):
        return columns
    differences = [(system.difference, each.metric) for each, system in rows]
    return [
        *columns,
        [f"difference {_INTERVAL}", *("" if d is None else _value(d, m, sign="+") for d, m in differences)],
        ["p", *("" if d is None else _p_value(d.corrected_p_value) for d, _ in differences)],
    ]


def _value(estimate: Estimate | ConfidenceInterval, metric: str, *, sign: str = "") -> str:
    numbers = (estimate.value, estimate.lower, estimate.upper)
    value, *ends = (format_value(each, metric, sign=sign) for each in numbers)
    return f"{value} [{', '.join(ends)}]"


def _ranking(metric: MetricComparison, baseline: str | None) -> Iterator[str]:
    """Yield a line for each system, best first, and lines between clusters, as WMT prints them."""
    scores = metric.ranked
    names = [f"{s.system} (baseline)" if s.system == baseline else s.system for s in scores]
    columns = [["system", *names]]
    columns += [[f"{column_title(metric.metric)} {_INTERVAL}", *(_value(s, metric.metric) for s in scores)]]
    if baseline is not None:
        columns = [["rank", *(str(s.rank) for s in scores)], *columns, *_against(scores, metric.metric)]
        columns += [["win/tie/loss", *(_counts(s) for s in scores)]]
    head, *rows = align(columns)
    yield head
    clusters = [None, *(score.rank.cluster for score in scores)]
    for row, score, last in zip(rows, scores, clusters, strict=False):
        if last is not None and last != score.rank.cluster:
            yield "-" * max(map(len, (head, *rows)))
        yield row


def _against(scores: Sequence[SystemScore | GroupScore], metric: str) -> list[list[str]]:
    """Return two columns: the difference from the baseline with its interval, and its p-value."""
    results = [score.against_baseline for score in scores]
    return [
        [
            f"difference {_INTERVAL}",
            *("" if r is None else _value(r.interval, metric, sign="+") for r in results),
        ],
        ["p", *("" if r is None else _p_value(r.p_value) for r in results)],
    ]


def _p_value(p_value: float) -> str:
    return f"{p_value:.4f}{_star(p_value)}"


def _star(p_value: float) -> str:
    return " *" if p_value < SIGNIFICANT else ""


def _counts(score: SystemScore) -> str:
    counts = score.sentences
    return "" if counts is None else f"{counts.wins:,}/{counts.ties:,}/{counts.losses:,}"


def _pairs(metric: MetricComparison) -> Iterator[str]:
    """Yield a triangle with the difference of each pair, the better system's value less the other's."""
    order = [score.system for score in metric.ranked]
    results = {pair.names: pair for pair in metric.pairs}
    yield f"{metric.metric} of the row less that of the column"
    columns = [["", *(f"{number} {name}" for number, name in enumerate(order[:-1], start=1))]]
    for place, column in enumerate(order[1:], start=1):
        cells = [""] * (len(order) - 1)
        for row in range(place):
            pair = results[frozenset((order[row], column))]
            gain = pair.result.test.difference * (1 if pair.second == order[row] else -1)
            cells[row] = f"{format_value(gain, metric.metric, sign='+')}{_star(pair.result.p_value)}"
        columns.append([str(place + 1), *cells])
    columns[-1][0] += f" {order[-1]}"
    yield from align(columns)


def _groups(metric: MetricComparison) -> Iterator[str]:
    rows = [
        (score.system, group)
        for place in range(len(metric.scores[0].groups))
        for score in metric.scores
        for group in [score.groups[place]]
    ]
    groups = [group for _, group in rows]
    columns = [
        ["sentences", *(f"{group.group} ({group.sentences:,})" for group in groups)],
        ["system", *(system for system, _ in rows)],
        [f"{column_title(metric.metric)} {_INTERVAL}", *(_value(group, metric.metric) for group in groups)],
    ]
    if any(group.against_baseline for group in groups):
        columns += _against(groups, metric.metric)
    yield from align(columns)


def _legend(comparison: TextComparison) -> Iterator[str]:
    config = comparison.config
    yield f"[95% interval] of {config.samples:,} bootstrap samples, seed {config.seed}"
    if comparison.baseline is not None:
        yield from _explanations(comparison)
    for metric in comparison.metrics:
        yield f"{metric.metric}: {metric.signature}"
    searches = group_by_value(comparison.searches)
    for search, names in searches.items():
        whose = f" of {', '.join(names)}" if len(searches) > 1 else ""
        yield f"search{whose}: {search}"


def _explanations(comparison: TextComparison) -> Iterator[str]:
    config, scores = comparison.config, comparison.metrics[0].scores
    pairs, groups = len(comparison.metrics[0].pairs), len(scores[0].groups)
    yield (
        "difference from the baseline, with p of a paired permutation test"
        f"{_corrected(pairs, 'pairs')}; * p < {SIGNIFICANT}"
    )
    yield "win/tie/loss: sentences that are better than, as good as and worse than the baseline's, one by one"
    if pairs > 1:
        yield "rank: from 1 + systems significantly better, to systems − those significantly worse"
        yield "line: every system above is significantly better than every one below"
    if groups:
        yield f"within groups, p is corrected for {groups * (len(scores) - 1)} tests"
    tests = max(pairs, groups * (len(scores) - 1))
    tested = [pair.result.test for metric in comparison.metrics for pair in metric.pairs]
    is_random = any("|ar:exact" not in test.signature for test in tested)
    if is_random and tests / (config.permutations + 1) >= SIGNIFICANT:
        needed = int(tests / SIGNIFICANT) + 1
        yield f"no difference of {tests} can be significant with so few draws; try --permutations {needed}"


def _corrected(tests: int, what: str) -> str:
    return f", corrected for {tests} {what} (Holm 1979)" if tests > 1 else ""
