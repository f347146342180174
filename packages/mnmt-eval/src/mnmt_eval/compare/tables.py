"""The tables of comparisons, for any format: ranks, all pairs, groups of sentences, means over tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
from mnmt_eval.metrics.protocol import format_number
from mnmt_eval.metrics.resampling import ConfidenceInterval


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A word, or a number with its interval."""

    text: str = ""
    interval: tuple[str, str] | None = None
    """The ends of the 95% interval."""
    p_value: str = ""
    """The p-value of a difference, where there is room for it."""
    is_significant: bool = False
    is_best: bool = False
    """Whether no system is significantly better."""
    view: Mapping[str, str] = field(default_factory=dict)
    """The fields and filters of the page that show the cell's sentences."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table, column by column."""

    kind: str
    """`ranking`, `pairs`, `groups`, `agreement`, `means` or `overview`."""
    title: str
    """The title; a column may have the same name."""
    columns: Mapping[str, Sequence[Cell]]
    """{name: its cells}."""
    label: str
    """The column that names the rows."""
    breaks: frozenset[int] = frozenset()
    """The rows with a line above."""

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        """The cells row by row."""
        return list(zip(*self.columns.values(), strict=True))

    def has_intervals(self, name: str) -> bool:
        """Return whether any cell of a column has an interval."""
        return any(cell.interval for cell in self.columns[name])


@dataclass(frozen=True, kw_only=True)
class Section:
    """The tables of one text, or the means over all, with what explains them."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    """A line for whatever the tables do not explain themselves."""
    signatures: tuple[str, ...] = ()
    """A line for each metric and search, with all that is needed to compute the same again."""


def sections(comparisons: Sequence[TextComparison], *, overviews: bool = False) -> list[Section]:
    """Return the tables of each text, and of several tasks the means.

    Args:
        comparisons: The comparison of each text.
        overviews: Whether to add what a paper needs: a table of all metrics, and remarks on them as notes.
    """
    of_texts = [_section(each, for_paper=overviews) for each in comparisons]
    return [*of_texts, *_means_section(average_directions(comparisons))]


def _overview(comparison: TextComparison) -> Table:
    """Return a row for each system and a column for each metric; marked are differences from the baseline."""
    by_metric = [{score.system: score for score in metric.scores} for metric in comparison.metrics]
    names = [score.system for score in comparison.metrics[0].ranked]
    columns = {
        metric.title: [
            _estimate(scores[name], metric, _is_best(scores[name], comparison.baseline), scores[name])
            for name in names
        ]
        for metric, scores in zip(comparison.metrics, by_metric, strict=True)
    }
    labels = [Cell(text=_label(name, comparison.baseline)) for name in names]
    return Table(kind="overview", title="all metrics", columns={"system": labels, **columns}, label="system")


def _section(comparison: TextComparison, *, for_paper: bool) -> Section:
    count = comparison.sentences
    tables = [_overview(comparison)] if for_paper and len(comparison.metrics) > 1 else []
    remarks = dict.fromkeys(remark for metric in comparison.metrics for remark in metric.remarks)
    for metric in comparison.metrics:
        tables.append(_ranking(metric, comparison.baseline))
        if len(metric.scores) > 2:
            tables.append(_pairs(metric))
        if metric.scores[0].groups:
            tables.append(_groups(metric, comparison))
    if comparison.agreements:
        tables.append(_agreement(comparison))
    return Section(
        title=f"{comparison.name}, {count:,} sentence{'s' * (count != 1)}",
        tables=tuple(tables),
        notes=(*(remarks if for_paper else ()), *_notes(comparison)),
        signatures=tuple(_signatures(comparison)),
    )


def _label(name: str, baseline: str | None) -> str:
    return f"{name} (baseline)" if name == baseline else name


def _is_best(score: SystemScore, baseline: str | None) -> bool:
    return baseline is not None and score.rank.best == 1


def _number(value: float, metric: MetricComparison | DirectionAverage, *, sign: str = "") -> str:
    return format_number(value, metric.decimals, sign=sign)


def _estimate(
    estimate: Estimate | ConfidenceInterval,
    metric: MetricComparison | DirectionAverage,
    is_best: bool = False,
    tested: SystemScore | None = None,
    *,
    sign: str = "",
) -> Cell:
    """Return a value with its interval, marked if it is of a system that differs from the baseline."""
    ends = (_number(estimate.lower, metric, sign=sign), _number(estimate.upper, metric, sign=sign))
    against = tested.against_baseline if tested else None
    return Cell(
        text=_number(estimate.value, metric, sign=sign),
        interval=ends,
        is_best=is_best,
        is_significant=against is not None and against.p_value < SIGNIFICANT,
    )


def _p_value(p_value: float) -> Cell:
    return Cell(text=f"{p_value:.4f}", is_significant=p_value < SIGNIFICANT)


def _ranking(metric: MetricComparison, baseline: str | None) -> Table:
    """Return a row for each system, best first, with lines between clusters, as WMT prints them."""
    scores = metric.ranked
    columns = {
        "system": [Cell(text=_label(score.system, baseline)) for score in scores],
        metric.title: [_estimate(score, metric, _is_best(score, baseline)) for score in scores],
    }
    if baseline is not None:
        ranks = [Cell(text=str(score.rank)) for score in scores]
        counts = [Cell(text=_counts(score)) for score in scores]
        columns = {"rank": ranks, **columns, **_against(scores, metric), "win/tie/loss": counts}
    clusters = [score.rank.cluster for score in scores]
    breaks = (place for place in range(1, len(scores)) if clusters[place] != clusters[place - 1])
    return Table(
        kind="ranking", title=metric.title, columns=columns, label="system", breaks=frozenset(breaks)
    )


def _against(scores: Sequence[SystemScore | GroupScore], metric: MetricComparison) -> dict[str, list[Cell]]:
    """Return two columns: the difference from the baseline with its interval, and its p-value."""
    results = [score.against_baseline for score in scores]
    return {
        "difference": [_estimate(r.interval, metric, sign="+") if r else Cell() for r in results],
        "p": [_p_value(r.p_value) if r else Cell() for r in results],
    }


def _counts(score: SystemScore) -> str:
    counts = score.sentences
    return "" if counts is None else f"{counts.wins:,}/{counts.ties:,}/{counts.losses:,}"


def _pairs(metric: MetricComparison) -> Table:
    """Return a triangle with the difference of each pair, the better system's value less the other's."""
    order = [score.system for score in metric.ranked]
    columns = {"": [Cell(text=f"{number} {name}") for number, name in enumerate(order[:-1], start=1)]}
    for place, name in enumerate(order[1:], start=1):
        cells = [_pair(metric, order[row], name) if row < place else Cell() for row in range(len(order) - 1)]
        last = f" {name}" if place == len(order) - 1 else ""
        columns[f"{place + 1}{last}"] = cells
    title = f"{metric.metric} of the row less that of the column"
    return Table(kind="pairs", title=title, columns=columns, label="")


def _pair(metric: MetricComparison, one: str, other: str) -> Cell:
    """Return one system's value less another's, with the p-value."""
    (pair,) = (pair for pair in metric.pairs if pair.names == {one, other})
    gain = pair.result.test.difference * (1 if pair.second == one else -1)
    p = pair.result.p_value
    return Cell(text=_number(gain, metric, sign="+"), p_value=f"{p:.4f}", is_significant=p < SIGNIFICANT)


def _groups(metric: MetricComparison, comparison: TextComparison) -> Table:
    grouping = str(comparison.config.grouping)
    rows = [
        (score.system, score.groups[place])
        for place in range(len(metric.scores[0].groups))
        for score in metric.scores
    ]
    groups = [group for _, group in rows]
    text, bucket = f"{comparison.testset}.{comparison.task}", "length" if grouping == "length" else "group"
    views = [{"text": text, "system": system, bucket: group.group} for system, group in rows]
    columns = {
        "sentences": [
            Cell(text=f"{group.group} ({group.sentences:,})", view=view)
            for group, view in zip(groups, views, strict=True)
        ],
        "system": [Cell(text=_label(system, comparison.baseline)) for system, _ in rows],
        metric.title: [_estimate(group, metric) for group in groups],
    }
    if any(group.against_baseline for group in groups):
        columns |= _against(groups, metric)
    title = f"{metric.metric} by {grouping}"
    breaks = frozenset(range(len(metric.scores), len(rows), len(metric.scores)))
    return Table(kind="groups", title=title, columns=columns, label="sentences", breaks=breaks)


def _agreement(comparison: TextComparison) -> Table:
    """Return the pairwise accuracies of each metric."""
    rows = comparison.agreements
    columns = {"metric": _words(row.metric for row in rows)}
    for name in ("systems", "sentences"):
        accuracies = [(getattr(row, name), getattr(row, f"{name[:-1]}_pairs")) for row in rows]
        columns[f"% of pairs of {name}"] = [
            Cell(text=f"{each.value:.1f}", interval=(f"{each.lower:.1f}", f"{each.upper:.1f}"))
            for each, _ in accuracies
        ]
        columns["pairs" if name == "systems" else "pairs of sentences"] = _words(
            f"{n:,}" for _, n in accuracies
        )
    title = f"ordered as by {comparison.config.human}"
    return Table(kind="agreement", title=title, columns=columns, label="metric")


def _notes(comparison: TextComparison) -> Iterator[str]:
    config = comparison.config
    whole = f" of {comparison.documents:,} whole documents" if comparison.documents else ""
    yield f"[95% interval] of {config.samples:,} bootstrap samples{whole}, seed {config.seed}"
    if comparison.baseline is None:
        return
    pairs, groups = len(comparison.metrics[0].pairs), len(comparison.metrics[0].scores[0].groups)
    in_groups = groups * (len(comparison.metrics[0].scores) - 1)
    yield (
        f"difference from the baseline, with p of a paired permutation test{' of documents' if whole else ''}"
        f"{_corrected(pairs, 'pairs')}; * p < {SIGNIFICANT}"
    )
    yield "win/tie/loss: sentences that are better than, as good as and worse than the baseline's, one by one"
    if pairs > 1:
        yield "rank: from 1 + systems significantly better, to systems − those significantly worse"
        yield "line: every system above is significantly better than every one below"
    if comparison.agreements:
        yield "ordered alike: of pairs that people part; a tie counts half; systems are resampled too"
    if groups:
        yield f"within groups, p is corrected for {in_groups} tests"
    tests = max(pairs, in_groups)
    tested = [pair.result.test for metric in comparison.metrics for pair in metric.pairs]
    is_random = any("|ar:exact" not in test.signature for test in tested)
    if is_random and tests / (config.permutations + 1) >= SIGNIFICANT:
        needed = int(tests / SIGNIFICANT) + 1
        yield f"no difference of {tests} can be significant with so few draws; try --permutations {needed}"


def _corrected(tests: int, what: str) -> str:
    return f", corrected for {tests} {what} (Holm 1979)" if tests > 1 else ""


def _signatures(comparison: TextComparison) -> Iterator[str]:
    for metric in comparison.metrics:
        yield f"{metric.metric}: {metric.signature}"
    searches = group_by_value(comparison.searches)
    for search, names in searches.items():
        whose = f" of {', '.join(names)}" if len(searches) > 1 else ""
        yield f"search{whose}: {search}"


def _means_section(averages: Sequence[DirectionAverage]) -> Iterator[Section]:
    """Yield means over tasks, out of English and into it apart, if there are several tasks."""
    if not averages:
        return
    rows = [(each, system) for each in averages for system in each.systems]
    tested = [system.difference for _, system in rows]
    columns = {
        "mean over tasks": _words(f"{each.direction} ({len(each.tasks)})" for each, _ in rows),
        "system": _words(system.system for _, system in rows),
        "metric": _words(each.title for each, _ in rows),
        "value": [_estimate(system.mean, each) for each, system in rows],
    }
    if any(tested):
        columns["difference"] = [
            _estimate(system.difference, each, sign="+") if system.difference else Cell()
            for each, system in rows
        ]
        columns["p"] = [_p_value(d.corrected_p_value) if d else Cell() for d in tested]
    tests = sum(difference is not None for difference in tested) // len({each.metric for each in averages})
    note = f"p of a paired permutation test{_corrected(tests, 'means')}; * p < {SIGNIFICANT}"
    title = "mean over tasks"
    table = Table(kind="means", title=title, columns=columns, label="system")
    yield Section(title=title, tables=(table,), notes=(note,) if tests else ())


def _words(texts: Iterable[str]) -> list[Cell]:
    return [Cell(text=text) for text in texts]
