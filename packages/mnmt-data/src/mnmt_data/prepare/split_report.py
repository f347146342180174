"""What the split did to the text: counts, and the lines about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mnmt_data.filters import FilterReport, LeakConfig
from mnmt_data.filters.leaks import NGRAMS
from mnmt_data.store.description import SentenceInfo

LEAK = "leak: "
"""Prefix of the names of the filters that drop copies of dev and test sentences."""

LARGE_SHARE = 0.1
"""Share of the training pairs from which on their loss as such copies is a warning."""


@dataclass(frozen=True, kw_only=True)
class DroppedPairs:
    """The training pairs of a task that its split dropped."""

    filters: FilterReport = field(default_factory=FilterReport)
    """Counts and samples; each pair counts once."""

    candidates: int = 0
    """Pairs before copies of dev and test sentences were dropped, without the sets themselves."""

    leaks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """{set: {rule: copies of a sentence of the set, counted by the first rule that finds them}}."""


@dataclass(frozen=True, kw_only=True)
class SplitReport:
    """What the split did to the text."""

    dropped: Mapping[str, DroppedPairs]
    """{task: the training pairs dropped}."""

    dev_copies: Mapping[str, int] = field(default_factory=dict)
    """{task: pairs left out of its dev set because they are copies of test sentences}, without zeros."""

    sentences: Mapping[str, SentenceInfo] = field(default_factory=dict)
    """{set: how its sentences stand to the training text}."""

    warnings: tuple[str, ...] = ()
    """A line for each task that has lost a large share of its pairs."""


def loss_warnings(config: LeakConfig, dropped: Mapping[str, DroppedPairs]) -> Iterator[str]:
    """Yield a line for each task that has lost `LARGE_SHARE` of its training pairs as copies."""
    for task, report in dropped.items():
        leaks = {rule: report.filters.counts[f"{LEAK}{rule}"] for rule in config.rules}
        lost, total = sum(leaks.values()), report.candidates
        if lost >= LARGE_SHARE * total:
            most = max(leaks, key=lambda rule: leaks[rule])
            what = f"{lost:,} of {total:,} training pairs ({lost / total:.0%}) are left out"
            why = f"as copies of dev or test sentences, most by the rule {most!r}"
            yield f"{task}: {what} {why}; {_remedy(config, most)}"


def _remedy(config: LeakConfig, rule: str) -> str:
    if rule == NGRAMS:
        larger = f"a `share` above {config.share:g} in [data.leaks], or `ngrams = false`"
        return f"of text made from templates more stays with {larger}"
    return "see that no dev or test set is part of the training text"


def report_lines(config: LeakConfig, report: SplitReport) -> Iterator[str]:
    """Yield a line about the dev sets, about the sentences of each set, and for each warning."""
    for task, copies in report.dev_copies.items():
        yield f"split: left out of dev of {task}: {copies:,} pairs that are copies of test sentences"
    words, n = config.min_words, config.ngram_words
    for name, counts in report.sentences.items():
        short = f"{counts.short:,} of {counts.sentences:,} sentences of {name} have fewer than {words} words"
        inside = f"n-grams do not find copies of these; {counts.inside:,} stand whole in a training sentence"
        some = counts.inside_ngrams and words > n
        remedy = (
            f", {counts.inside_ngrams:,} of which `min_words = {n}` in [data.leaks] finds" if some else ""
        )
        yield f"leaks: {short}; {inside}{remedy}"
    for line in report.warnings:
        yield f"warning: {line}"
