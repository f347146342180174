from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.analysis import (
    Resources,
    SystemCost,
    metric_line,
    quality_at_cost,
    relative_transfer,
    resource_scores,
    zero_shot,
)
from mnmt_eval.compare.groups import length_groups, length_thirds, origin_groups, score_groups
from mnmt_eval.report.symptoms import symptoms

M4 = [
    ("MoE(2048E, 36L)", 44.3, 600e9, 13.5),
    ("MoE(2048E, 12L)", 41.3, 200e9, 10.5),
    ("MoE(512E, 36L)", 43.7, 150e9, 12.9),
    ("MoE(512E, 12L)", 40.0, 50e9, 9.2),
    ("MoE(128E, 36L)", 39.0, 37e9, 8.2),
    ("MoE(128E, 12L)", 36.7, 12.5e9, 5.9),
    ("T(96L)", 36.9, 2.3e9, 6.1),
]
BASELINES = 30.8


def test_the_m4_tables_differences_follow_from_its_averages() -> None:
    systems = [SystemCost(name=name, values={"avg": bleu}, cost=weights) for name, bleu, weights, _ in M4]
    rows = quality_at_cost(systems, {"avg": BASELINES})
    assert [(row.name, round(row.difference, 1)) for row in rows] == [(name, gain) for name, _, _, gain in M4]
    assert {row.name for row in rows if not row.efficient} == {"MoE(2048E, 12L)", "MoE(128E, 12L)"}


def test_where_lower_is_better_a_system_is_efficient_for_its_low_value() -> None:
    systems = [
        SystemCost(name=name, values={"de": ter}, cost=cost)
        for name, ter, cost in [("good", 40.0, 2.0), ("cheap", 50.0, 1.0), ("neither", 60.0, 3.0)]
    ]
    rows = quality_at_cost(systems, {"de": 70.0}, higher_is_better=False)
    assert [(row.name, row.difference, row.efficient) for row in rows] == [
        ("good", -30.0, True),
        ("cheap", -20.0, True),
        ("neither", -10.0, False),
    ]


def test_quality_is_averaged_over_the_baselines_tasks_alone() -> None:
    system = SystemCost(name="all", values={"en-de": 30.0, "en-fr": 40.0, "de-fr": 1.0}, cost=1.0)
    (row,) = quality_at_cost([system], {"en-de": 20.0, "en-fr": 38.0})
    assert (row.value, row.difference) == (35.0, 6.0)


@pytest.mark.parametrize(
    ("systems", "baselines", "message"),
    [
        ([], {}, "`baselines` must have at least one task"),
        (
            [SystemCost(name="a", values={"en-de": 1.0}, cost=1.0)],
            {"en-fr": 1.0},
            "a must have a value of every baseline's task, but lacks en-fr",
        ),
    ],
)
def test_costs_that_cannot_be_compared_are_told(
    systems: list[SystemCost], baselines: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        quality_at_cost(systems, baselines)


def test_origins_say_which_side_was_written_first() -> None:
    assert origin_groups(["en", "de", "fr", ""], task="en-de") == [
        "source-original",
        "target-original",
        "other-original",
        "unknown",
    ]


def test_lengths_are_named_by_their_range() -> None:
    assert length_groups([0, 9, 10, 19, 20, 900], bounds=(0, 10, 20)) == [
        "0-9", "0-9", "10-19", "10-19", "20+", "20+"
    ]  # fmt: skip


@pytest.mark.parametrize("bounds", [(), (1, 2), (0, 5, 5)])
def test_bounds_must_ascend(bounds: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="`bounds` must ascend from 0"):
        length_groups([1], bounds=bounds)


@given(st.lists(st.integers(0, 50)))
def test_thirds_are_equally_large_and_ordered_by_length(lengths: list[int]) -> None:
    thirds = length_thirds(lengths)
    counts = [thirds.count(name) for name in ("short", "medium", "long")]
    assert max(counts) - min(counts) <= 1
    by_third = [[n for n, third in zip(lengths, thirds, strict=True) if third == name] for name in
                ("short", "medium", "long")]  # fmt: skip
    assert [n for part in by_third for n in sorted(part)] == sorted(lengths)


def mean(statistics: np.ndarray) -> float:
    return float(statistics[:, 0].mean())


def test_each_group_is_scored_as_a_test_set_of_its_own() -> None:
    statistics = np.array([[1.0], [2.0], [4.0], [9.0], [5.0]])
    scores = score_groups(mean, statistics, ["20+", "0-9", "0-9", "10-19", "100-119"])
    assert [(s.group, s.sentences, s.value) for s in scores] == [
        ("0-9", 2, 3.0),
        ("10-19", 1, 9.0),
        ("20+", 1, 1.0),
        ("100-119", 1, 5.0),
    ]
    origins = score_groups(mean, statistics[:3], ["unknown", "target-original", "source-original"])
    assert [s.group for s in origins] == ["source-original", "target-original", "unknown"]
    with pytest.raises(ValueError, match=r"`groups` must be as many as sentences \(5\), but are 1"):
        score_groups(mean, statistics, ["0-9"])


@pytest.mark.parametrize(
    ("pairs", "group"),
    [(900_001, "High"), (900_000, "Med"), (100_000, "Med"), (99_999, "Low"), (0, "Low")],
)
def test_opus_100s_thresholds(pairs: int, group: str) -> None:
    assert Resources().group(pairs) == group


@pytest.mark.parametrize(("high", "low"), [(5, 6), (5, -1)])
def test_thresholds_in_disorder_are_told(high: int, low: int) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        Resources(high=high, low=low)


def test_resource_scores_are_means_over_tasks() -> None:
    values = {"en-de": 30.0, "en-fr": 40.0, "en-gu": 10.0, "de-fr": 5.0}
    scores = resource_scores(
        values, {"en-de": 10, "en-fr": 11, "en-gu": 2}, resources=Resources(high=5, low=3)
    )
    assert [(s.group, s.tasks, s.value) for s in scores] == [
        ("High", ("en-de", "en-fr"), 35.0),
        ("Low", ("en-gu",), 10.0),
        ("All", ("en-de", "en-fr", "en-gu"), pytest.approx(80 / 3)),
    ]
    assert resource_scores(values, {}) == ()


def test_zero_shot_directions_and_their_means() -> None:
    found = zero_shot({"de-fr": 10.0, "fr-de": 20.0, "en-de": 40.0}, {"de-fr": 50.0, "fr-de": 70.0},
                      tasks=["de-fr", "fr-de", "fr-zh"])  # fmt: skip
    assert found is not None
    assert [d.task for d in found.directions] == ["de-fr", "fr-de"]
    assert (found.mean_value, found.mean_language_accuracy) == (15.0, 60.0)
    unknown = zero_shot({"de-fr": 10.0, "fr-de": 20.0}, {"de-fr": 50.0}, tasks=["de-fr", "fr-de"])
    assert unknown is not None
    assert unknown.mean_language_accuracy is None
    assert zero_shot({"en-de": 40.0}, {}, tasks=["de-fr"]) is None


def test_transfer_is_multilingual_less_bilingual() -> None:
    transfer = relative_transfer({"en-de": 31.0, "en-gu": 12.0, "de-fr": 9.0}, {"en-gu": 4.0, "en-de": 33.0})
    assert [(made.task, made.difference) for made in transfer] == [("en-de", -2.0), ("en-gu", 8.0)]


def test_the_line_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(3)
    losses = rng.uniform(1, 3, size=12)
    values = 60 - 12 * losses + rng.normal(0, 1, size=12)
    line = metric_line(losses.tolist(), values.tolist())
    slope, intercept = np.polyfit(losses, values, 1)
    assert (line.slope, line.intercept) == pytest.approx((slope, intercept))
    assert line.correlation == pytest.approx(np.corrcoef(losses, values)[0, 1])
    assert line.slope_interval.lower < -12 < line.slope_interval.upper
    assert line.intercept_interval.lower < 60 < line.intercept_interval.upper
    assert line.correlation_interval.lower < line.correlation < line.correlation_interval.upper <= 1
    assert line.value(2.0) == pytest.approx(intercept + 2 * slope)
    assert metric_line(losses.tolist(), values.tolist()) == line


def test_intervals_cover_the_true_slope_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        losses = rng.uniform(1, 3, size=30)
        values = 50 - 8 * losses + rng.normal(0, 2, size=30)
        line = metric_line(losses.tolist(), values.tolist(), samples=300)
        covered += line.slope_interval.lower <= -8 <= line.slope_interval.upper
    assert 0.87 <= covered / 200 <= 0.99


def test_an_exact_line_has_intervals_of_no_width() -> None:
    line = metric_line([1.0, 2.0, 4.0], [50.0, 40.0, 20.0])
    assert (line.slope, line.correlation, line.count) == pytest.approx((-10, -1, 3))
    assert line.slope_interval.upper - line.slope_interval.lower == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("losses", "values"),
    [([1.0, 2.0], [1.0, 2.0]), ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], [1.0, 2.0])],
)
def test_points_that_make_no_line_are_told(losses: list[float], values: list[float]) -> None:
    with pytest.raises(ValueError, match="a line needs"):
        metric_line(losses, values)


@pytest.mark.parametrize(
    ("source", "reference", "translation", "found"),
    [
        ("a dog", "ein Hund", "ein Hund", ()),
        ("a dog", "ein Hund", " ", ("empty",)),
        (" ", "", "", ()),
        ("a dog", "ein Hund", "a dog", ("copy",)),
        ("OK", "OK", "OK", ()),
        ("", "ein Hund", "ein Hund", ()),
        ("no", "nein", "nein ja nein ja nein ja nein ja", ("repetition", "too long")),
        ("no no", "ja nein ja nein ja nein ja nein", "ja nein ja nein ja nein ja nein", ()),
        ("x", "这是一个非常普通的句子没有什么", "这是这是这是这是这是", ("repetition",)),
        ("x", "Ein ziemlich langer Satz mit vielen Wörtern.", "Ein Satz.", ("too short",)),
    ],
)
def test_symptoms(source: str, reference: str, translation: str, found: tuple[str, ...]) -> None:
    assert symptoms(source, [reference], translation) == found
    assert symptoms(source, [reference, translation], translation) == tuple(s for s in found if s == "empty")
