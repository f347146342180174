"""Lines from loss to translation quality."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import RunTable, pair_metrics, quality_lines, read_table

LINES = {"en-de": (-18.0, 80.0), "en-zh": (-9.0, 55.0)}


def table(*, noise: float = 0.0, metrics: tuple[str, ...] = ("chrf",)) -> RunTable:
    rng = np.random.default_rng(0)
    size, weight = (axis.ravel() for axis in np.meshgrid([1e6, 3e6, 1e7], [0.3, 0.7]))
    parts = []
    for (task, (slope, intercept)), share in zip(LINES.items(), (weight, 1 - weight), strict=True):
        loss = 1 + (share * size / 1e6) ** -0.4
        base = pd.DataFrame({"run": [f"r{i}" for i in range(6)], "size": size, "weight": share}).assign(
            task=task
        )
        parts.append(base.assign(metric="loss", value=loss))
        for metric in metrics:
            points = intercept + slope * loss + noise * rng.standard_normal(6)
            parts.append(base.assign(metric=metric, value=points))
    return read_table(pd.concat(parts).assign(testset="test"))


def pairs_of(runs: RunTable) -> pd.DataFrame:
    return pair_metrics(runs)


def test_lines_are_those_the_metrics_were_made_with() -> None:
    lines = quality_lines(pairs_of(table()), "chrf").set_index("task")
    for task, (slope, intercept) in LINES.items():
        assert lines.loc[task, "slope"] == pytest.approx(slope, rel=1e-10)
        assert lines.loc[task, "intercept"] == pytest.approx(intercept, rel=1e-10)
        assert lines.loc[task, "r"] == pytest.approx(-1)
        assert lines.loc[task, "count"] == 6


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_lines_and_intervals_are_those_of_least_squares(level: float) -> None:
    pairs = pairs_of(table(noise=0.5))
    lines = quality_lines(pairs, "chrf", level=level).set_index("task")
    for task, task_pairs in pairs.groupby("task"):
        x, y = task_pairs["loss"].to_numpy(), task_pairs["chrf"].to_numpy()
        (slope, intercept), covariance = np.polyfit(x, y, 1, cov=True)
        line = lines.loc[str(task)]
        assert [line["slope"], line["intercept"]] == pytest.approx([slope, intercept], rel=1e-10)
        assert line["slope_std"] == pytest.approx(np.sqrt(covariance[0, 0]), rel=1e-10)
        assert line["r"] == pytest.approx(np.corrcoef(x, y)[0, 1])
        assert line["upper"] - line["slope"] == pytest.approx(line["slope"] - line["lower"])
    reach = (lines["upper"] - lines["slope"]) / lines["slope_std"]
    # Student's t with 4 degrees of freedom, from a table
    np.testing.assert_allclose(reach, {0.5: 0.741, 0.95: 2.776}[level], rtol=1e-3)


def test_metrics_are_paired_by_run_and_task() -> None:
    runs = table(metrics=("bleu", "chrf"))
    shuffled = RunTable(frame=runs.frame.sample(frac=1, random_state=1), source=runs.source)
    pairs = pair_metrics(shuffled)
    assert len(pairs) == 12
    for task, (slope, intercept) in LINES.items():
        task_pairs = pairs[pairs["task"] == task]
        np.testing.assert_allclose(task_pairs["chrf"], intercept + slope * task_pairs["loss"])
    assert pairs["bleu"].notna().all()


def test_a_run_without_the_metric_is_left_out_of_the_line() -> None:
    runs = table()
    gap = (runs.frame["run"] == "r0") & (runs.frame["metric"] == "chrf") & (runs.frame["task"] == "en-de")
    pairs = pairs_of(read_table(runs.frame[~gap]))
    assert pairs["chrf"].isna().sum() == 1
    assert quality_lines(pairs, "chrf").set_index("task")["count"].to_dict() == {"en-de": 5, "en-zh": 6}


def test_metrics_of_another_test_set_are_not_mixed_in() -> None:
    runs = table()
    other = runs.frame.assign(testset="news", value=1.0)
    both = read_table(pd.concat([runs.frame, other]))
    pd.testing.assert_frame_equal(pair_metrics(both, testset="test"), pairs_of(runs))


def test_a_metric_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="`metric` must be one of bleu, chrf, but is 'bleurt'"):
        quality_lines(pairs_of(table(metrics=("bleu", "chrf"))), "bleurt")


def test_loss_alone_has_no_pairs() -> None:
    pairs = pairs_of(table(metrics=()))
    assert pairs.empty
    with pytest.raises(ValueError, match="`metric` must be one of none, but is 'chrf'"):
        quality_lines(pairs, "chrf")


def test_two_pairs_make_no_line() -> None:
    pairs = pairs_of(table())
    few = pairs[(pairs["task"] == "en-zh") | pairs["run"].isin(["r0", "r1"])]
    assert quality_lines(few, "chrf")["task"].tolist() == ["en-zh"]
    assert quality_lines(few[few["task"] == "en-de"], "chrf").empty
