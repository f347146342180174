from __future__ import annotations

import pytest

from mnmt_eval.analysis import Resources, relative_transfer, resource_scores, zero_shot


@pytest.mark.parametrize(
    ("pairs", "group"), [(900_001, "High"), (900_000, "Med"), (100_000, "Med"), (99_999, "Low"), (0, "Low")]
)
def test_opus_100s_thresholds(pairs: int, group: str) -> None:
    assert Resources().group(pairs) == group


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
    result = zero_shot({"de-fr": 10.0, "fr-de": 20.0, "en-de": 40.0}, {"de-fr": 50.0, "fr-de": 70.0},
                      tasks=["de-fr", "fr-de", "fr-zh"])  # fmt: skip
    assert result is not None
    assert [d.task for d in result.directions] == ["de-fr", "fr-de"]
    assert (result.mean_value, result.mean_language_accuracy) == (15.0, 60.0)
    unknown = zero_shot({"de-fr": 10.0, "fr-de": 20.0}, {"de-fr": 50.0}, tasks=["de-fr", "fr-de"])
    assert unknown is not None
    assert unknown.mean_language_accuracy is None
    assert zero_shot({"en-de": 40.0}, {}, tasks=["de-fr"]) is None


def test_transfer_is_multilingual_less_bilingual() -> None:
    transfer = relative_transfer({"en-de": 31.0, "en-gu": 12.0, "de-fr": 9.0}, {"en-gu": 4.0, "en-de": 33.0})
    assert [(each.task, each.difference) for each in transfer] == [("en-de", -2.0), ("en-gu", 8.0)]
