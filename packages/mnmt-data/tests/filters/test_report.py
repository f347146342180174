from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.filters import FilterReport
from mnmt_data.filters.report import SAMPLE_CHARACTERS, SAMPLES

names = st.sampled_from(["empty", "identical", "ratio"])
drops = st.lists(st.tuples(names, st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=9)))


def reported(steps: list[tuple[str, list[tuple[str, str]]]]) -> FilterReport:
    total = FilterReport()
    for name, pairs in steps:
        total += FilterReport.of(name, [src for src, _ in pairs], [tgt for _, tgt in pairs])
    return total


def test_report_of_one_filter_shows_the_first_pairs_cut_short() -> None:
    src = [f"{row}" + "x" * 500 for row in range(9)]
    report = FilterReport.of("too long", src, ["y"] * 9)
    assert report.counts == {"too long": 9}
    assert report.samples["too long"] == tuple((text[:SAMPLE_CHARACTERS], "y") for text in src[:SAMPLES])


def test_a_filter_that_dropped_nothing_is_counted_without_samples() -> None:
    report = FilterReport.of("empty", [], [])
    assert (report.counts, report.samples) == ({"empty": 0}, {})


@given(drops)
def test_counts_add_up_and_first_samples_stay(steps: list[tuple[str, list[tuple[str, str]]]]) -> None:
    total = reported(steps)
    by_name: dict[str, list[tuple[str, str]]] = {}
    for name, pairs in steps:
        by_name.setdefault(name, []).extend(pairs)
    assert list(total.counts.items()) == [(name, len(pairs)) for name, pairs in by_name.items()]
    assert total.samples == {name: tuple(pairs[:SAMPLES]) for name, pairs in by_name.items() if pairs}
    assert total.dropped == sum(map(len, by_name.values()))


@given(drops)
def test_a_report_survives_json(steps: list[tuple[str, list[tuple[str, str]]]]) -> None:
    report = reported(steps)
    assert FilterReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report
