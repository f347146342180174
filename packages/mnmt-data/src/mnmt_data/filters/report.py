"""Reports of dropped pairs: their number, and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BAD_LINE = "bad line"
EMPTY = "empty"
IDENTICAL = "identical"
TOO_LONG = "too long"
RATIO = "ratio"
WRONG_LANGUAGE = "wrong language"
DUPLICATE = "duplicate"
NEAR_DUPLICATE = "near duplicate"
DEV_OR_TEST = "dev or test pair"

BUILT_IN = frozenset(
    {
        BAD_LINE,
        EMPTY,
        IDENTICAL,
        TOO_LONG,
        RATIO,
        WRONG_LANGUAGE,
        DUPLICATE,
        NEAR_DUPLICATE,
        DEV_OR_TEST,
    }
)
"""Names reserved for filters, which scores must not have."""

SAMPLES = 5
"""Samples of each filter."""

SAMPLE_CHARACTERS = 200
"""Characters of each side of a sample."""

Sample = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class FilterReport:
    """Report of dropped pairs; `a + b` reports on the pairs of `a` followed by the pairs of `b`."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """{filter: pairs dropped}, also if 0, in order of application."""

    samples: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    """{filter: the first `SAMPLES` pairs it dropped}, cut to `SAMPLE_CHARACTERS` for each side."""

    @classmethod
    def of(cls, name: str, src: Sequence[str], tgt: Sequence[str]) -> FilterReport:
        """Report that the filter `name` dropped these pairs."""
        first = zip(src[:SAMPLES], tgt[:SAMPLES], strict=True)
        samples = tuple((one[:SAMPLE_CHARACTERS], other[:SAMPLE_CHARACTERS]) for one, other in first)
        return cls(counts={name: len(src)}, samples={name: samples} if samples else {})

    @property
    def dropped(self) -> int:
        """Pairs dropped by all filters together."""
        return sum(self.counts.values())

    def __add__(self, other: FilterReport) -> FilterReport:
        counts, samples = dict(self.counts), dict(self.samples)
        for name, count in other.counts.items():
            counts[name] = counts.get(name, 0) + count
        for name, more in other.samples.items():
            samples[name] = (*samples.get(name, ()), *more)[:SAMPLES]
        return FilterReport(counts=counts, samples=samples)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a value for JSON."""
        samples = {name: [list(pair) for pair in pairs] for name, pairs in self.samples.items()}
        return {"counts": dict(self.counts), "samples": samples}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> FilterReport:
        """Return the report from the value of `to_dict`."""
        samples = {name: tuple((src, tgt) for src, tgt in pairs) for name, pairs in table["samples"].items()}
        return cls(counts=dict(table["counts"]), samples=samples)
