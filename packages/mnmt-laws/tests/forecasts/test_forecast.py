"""Averages over laws and rulers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import Forecast, KnownLaw, LawFit, Observations, TableError, forecast, observe
from mnmt_laws.forecasts.forecast import forecast_of, noise_of
from mnmt_laws.forecasts.forms import floors_of, shares_of
from mnmt_laws.forecasts.target import at_length

POINTS = np.stack([np.linspace(0.05, 0.95, 19), np.linspace(0.95, 0.05, 19)], axis=1)


def true_loss(law: KnownLaw, size: float, weight: np.ndarray) -> np.ndarray:
    """β_1 (f̂(p) N)^-α + L∞ with f̂(p) = p + c1 p^c2 (1 - p)^c3."""
    p = law.parameters
    share = weight + p["c1"] * weight ** p["c2"] * (1 - weight) ** p["c3"]
    return np.asarray(p["beta"] * (share * size) ** -p["alpha"] + p["l_inf"])


@pytest.mark.parametrize("size", [1e5, 5e5, 1e7])
def test_losses_on_a_law_are_forecast_exactly(
    clean_forecast: Forecast, laws: dict[str, KnownLaw], size: float
) -> None:
    losses = clean_forecast.losses(POINTS, size=size)
    for place, task in enumerate(clean_forecast.tasks):
        expected = true_loss(laws[task], size, POINTS[:, place])
        np.testing.assert_allclose(
            losses[:, place], np.broadcast_to(expected, losses[:, place].shape), rtol=1e-3
        )


def test_the_law_that_holds_has_nearly_all_of_the_average(clean_forecast: Forecast) -> None:
    table = clean_forecast.table.set_index("law")
    assert table.index[0] == "capacity"
    assert table["share"].iloc[0] > 0.99
    assert table["share"].sum() == pytest.approx(1.0)
    assert {"joint", "per-weighting", "lines"} <= set(table.index)
    assert table.loc["capacity", ["size_error", "mixture_error"]].max() < 1e-4
    assert table.loc["joint", "size_error"] < 1e-4 < table.loc["joint", "mixture_error"]


def test_one_law_can_be_named_and_one_that_predicts_no_mixtures_is_refused(clean: Observations) -> None:
    one = forecast(clean, law="joint", size=5e5, refits=0)
    assert [member.form.name for member in one.members] == ["joint"]
    assert one.members[0].count == 1
    with pytest.raises(TableError, match="the power law predicts no mixtures of this table; leave out --law"):
        forecast(clean, law="power", size=5e5)


def stub(tasks: int, **errors: list[float]) -> Any:
    """A form that was tested on rows 0, 1, … of each axis with these errors."""
    series = {axis: pd.Series(values, index=range(len(values))) for axis, values in errors.items()}
    return SimpleNamespace(errors=series, fit=SimpleNamespace(tasks=["a", "b"][:tasks]))


def test_shares_are_likelihoods_of_normal_errors() -> None:
    """Two tasks give four independent errors a back-test: σ^-4 of each axis."""
    forms = [stub(2, size=[0.01, -0.01], mixture=[0.02]), stub(2, size=[0.02, 0.02], mixture=[-0.03])]
    likely = np.array([0.01**-4 * 0.02**-4, 0.02**-4 * 0.03**-4])
    np.testing.assert_allclose(shares_of(forms), likely / likely.sum())
    one_task = np.array([0.01**-2, 0.02**-2])
    alone = [stub(1, size=[0.01]), stub(1, size=[0.02])]
    np.testing.assert_allclose(shares_of(alone), one_task / one_task.sum())


def test_a_form_that_a_back_test_cannot_judge_has_the_worst_error_there() -> None:
    forms = [stub(2, size=[0.01]), stub(2, size=[0.04]), stub(2)]
    shares = shares_of(forms)
    assert shares[2] == shares[1] < shares[0]
    np.testing.assert_allclose(shares_of([stub(2), stub(2)]), 0.5)  # none can be judged


def test_the_laws_own_error_is_none_within_the_data_and_grows_beyond_it(study_table: pd.DataFrame) -> None:
    largest = study_table["size"].eq(study_table.loc[study_table["role"].eq("fit"), "size"].max())
    bent = study_table.assign(value=study_table["value"] * np.where(largest, 1.1, 1.0))
    average = forecast(observe(bent, metric="loss"), law="capacity", size=5e5, refits=20)
    member = average.members[0]
    edge = member.form.model_errors[0].edge
    floors = np.array(list(floors_of(average.best).values()))[:, None]
    spreads = []
    for size in (0.5 * edge, edge, 2 * edge, 8 * edge):
        losses = average.losses(POINTS, size=size)
        law = average.best.evaluator.predict_points(member.draws, points=POINTS[None], size=size)
        ratio = np.log((losses - floors) / (law - floors))
        spreads.append(ratio.std(axis=0).mean())
    assert spreads[:2] == pytest.approx([0.0, 0.0], abs=1e-12)
    assert 0 < spreads[2] < spreads[3]
    assert spreads[3] == pytest.approx(3 * spreads[2])  # in proportion to log N


def test_a_known_irreducible_loss_is_never_crossed(study_table: pd.DataFrame) -> None:
    loss = study_table[study_table["metric"] == "loss"]
    known = {"en-de": 0.18, "en-zh": 0.25}
    table = observe(loss.assign(irreducible=loss["task"].map(known)))
    average = forecast(table, law="capacity", size=5e5, refits=20)
    mean, (low, high) = average.predict(POINTS, size=1e12)
    for place, task in enumerate(average.tasks):
        assert (average.losses(POINTS, size=1e12)[:, place] >= known[task]).all()
        assert (known[task] <= low[place]).all()
        assert (low[place] < mean[place]).all()
        assert (mean[place] < high[place]).all()


def test_draws_are_shared_out_and_predictions_are_their_mean(study_table: pd.DataFrame) -> None:
    few = study_table[study_table["weight"].isin([0.3, 0.5, 0.7])]
    average = forecast(observe(few, metric="loss"), size=5e5, refits=60)
    assert sum(member.share for member in average.members) == pytest.approx(1.0)
    losses = average.losses(POINTS)
    assert losses.shape == (sum(member.count for member in average.members), 2, len(POINTS))
    mean, (low, high) = average.predict(POINTS)
    np.testing.assert_allclose(mean, losses.mean(axis=0))
    assert ((low < mean) & (mean < high)).all()


def test_a_fit_is_forecast_by_its_own_refits(two_tasks: LawFit) -> None:
    average = forecast_of(two_tasks, size=1e5)
    assert average.members[0].count == two_tasks.draws.sizes["draw"]
    draws = two_tasks.evaluator.predict_points(two_tasks.draws, points=POINTS[None], size=1e5)
    np.testing.assert_allclose(average.losses(POINTS), draws)


def test_noise_is_the_scatter_of_the_loss_above_the_floor(two_tasks: LawFit) -> None:
    for task, noise in zip(two_tasks.tasks, noise_of(two_tasks), strict=True):
        rows, floor = two_tasks.rows.query("task == @task"), two_tasks.observations.irreducible_of(task)
        errors = np.log((rows["value"] - floor) / (two_tasks.predict(rows) - floor))
        assert noise == pytest.approx(np.sqrt((errors**2).sum() / (len(rows) - 6)))


def test_a_law_without_spare_observations_does_not_tell_the_noise(
    clean_forecast: Forecast, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = clean_forecast.members[0]
    two = replace(clean_forecast, members=(best, best))
    noises = iter([np.zeros(2), np.array([0.1, 0.2])])
    monkeypatch.setattr("mnmt_laws.forecasts.forecast.noise_of", lambda fitted: next(noises))
    losses = np.ones((2, 1))
    floors = np.array(list(floors_of(best.form.fit).values()))
    np.testing.assert_allclose(two.noise(losses)[:, 0], (1 - floors) * [0.1, 0.2])


def test_rows_of_a_length_are_each_models_nearest() -> None:
    rows = [
        {"task": "a", "size": size, "tokens": tokens, "weight": 1.0, "metric": "loss", "value": 1.0}
        for size in (1e5, 2e5)
        for tokens in (1e6, 1.1e6, 4e6)
    ]
    lengths = observe(pd.DataFrame(rows))
    near = at_length(lengths, 1.02e6)
    assert near is not None
    assert near.frame["tokens"].tolist() == [1e6, 1e6]
    assert at_length(lengths, 1e9) is None
