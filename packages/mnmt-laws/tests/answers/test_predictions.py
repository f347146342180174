"""Held-out runs, and models of three tasks, are predicted from what was fitted."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import (
    LawFit,
    MoreTasks,
    Observations,
    Perturbation,
    ResidualBootstrap,
    TableError,
    TaskLaw,
    compare_irreducible,
    fit,
    observe,
    predict_held_out,
    predict_more_tasks,
    recommend,
    simulate,
)
from mnmt_laws.tables.mixture import format_mixture, parse_mixture

TASKS = ("en-de", "en-fr", "en-zh")
SIZES = (2e7, 6e7, 1.3e8, 3.4e8)
PIVOT = 1e8
# α, L∞, c2 and c3 of each task, then what it gains from either partner in the order of TASKS
LAWS = {
    "en-de": (0.35, 0.9, 0.6, 1.0, {"en-fr": 0.4, "en-zh": 0.1}),
    "en-fr": (0.30, 0.7, 0.5, 1.2, {"en-de": 0.5, "en-zh": 0.15}),
    "en-zh": (0.28, 1.1, 0.7, 0.9, {"en-de": 0.2, "en-fr": 0.3}),
}
PAIRS = [
    dict(zip(pair, (p, 1 - p), strict=True))
    for pair in itertools.combinations(TASKS, 2)
    for p in (0.2, 0.4, 0.6, 0.8)
]
TRIPLES = [dict(zip(TASKS, p, strict=True)) for p in ((0.2, 0.3, 0.5), (0.6, 0.2, 0.2), (0.1, 0.8, 0.1))]
NONE = ResidualBootstrap(refits=0)


def loss(task: str, size: float, mixture: dict[str, float]) -> float:
    """The capacity law of eq. 11, the gain being the mean by weight of those from each partner."""
    alpha, limit, c2, c3, gains = LAWS[task]
    p = mixture[task]
    share = p
    if p < 1:
        gain = sum(gains[other] * weight for other, weight in mixture.items() if other != task) / (1 - p)
        share += gain * p**c2 * (1 - p) ** c3
    return float((share * size / PIVOT) ** -alpha + limit)


def rows_of(mixtures: list[dict[str, float]], *, noise: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        {
            "run": f"{size:g}|{format_mixture(mixture)}", "size": size, "task": task, "weight": mixture[task],
            "mixture": format_mixture(mixture), "metric": "loss",
            "value": loss(task, size, mixture) * (1 + noise * rng.standard_normal()),
        }
        for size in SIZES for mixture in mixtures for task in mixture
    ]  # fmt: skip
    return pd.DataFrame(rows)


def study(*, noise: float = 0.0, triples: list[dict[str, float]] = TRIPLES) -> pd.DataFrame:
    return rows_of([{task: 1.0} for task in TASKS] + PAIRS + triples, noise=noise)


@pytest.fixture(scope="module")
def exact_pairs() -> MoreTasks:
    """Models of three tasks, predicted from losses of one and two without noise."""
    return predict_more_tasks(study(), uncertainty=NONE)


def test_three_tasks_follow_from_their_pairs(exact_pairs: MoreTasks) -> None:
    prediction = exact_pairs
    assert len(prediction.rows) == len(SIZES) * len(TRIPLES) * 3
    columns = (prediction.rows[name].tolist() for name in ("task", "size", "mixture"))
    expected = [
        loss(task, size, parse_mixture(mixture, "row")) for task, size, mixture in zip(*columns, strict=True)
    ]
    np.testing.assert_allclose(prediction.rows["predicted"], expected, rtol=1e-6)
    assert prediction.median_error < 1e-6
    assert (prediction.rows["num_tasks"] == 3).all()
    assert prediction.rows[["lower", "upper"]].isna().all(axis=None)


def test_models_of_three_are_predicted_and_never_fitted_held_out_or_not() -> None:
    rows = study()
    triple = rows["mixture"].str.count(":") > 2
    held_out = triple & rows["size"].gt(SIZES[1])
    odd = rows.assign(
        value=rows["value"] * np.where(triple, 1.1, 1.0), role=np.where(held_out, "held-out", "fit")
    )
    predicted = predict_more_tasks(odd, uncertainty=NONE)
    assert len(predicted.rows) == len(SIZES) * len(TRIPLES) * 3
    assert len(predicted.fit.observations.frame) == len(rows) - len(predicted.rows)
    np.testing.assert_allclose(predicted.rows["error"], 0.1, rtol=1e-5)
    assert predicted.median_error == pytest.approx(0.1, rel=1e-5)


def test_errors_are_relative_and_intervals_hold_the_prediction() -> None:
    prediction = predict_more_tasks(study(noise=0.002), uncertainty=Perturbation(share=0.002, refits=20))
    rows = prediction.rows
    np.testing.assert_allclose(rows["error"], rows["observed"] / rows["predicted"] - 1)
    assert ((rows["lower"] < rows["predicted"]) & (rows["predicted"] < rows["upper"])).mean() > 0.9
    draws = prediction.fit.predict(prediction.fit.observations.frame.iloc[:2], draws=True)
    assert draws.shape == (20, 2)
    assert rows["error"].abs().median() == prediction.median_error < 0.01


def test_a_partner_may_hinder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAWS, "en-de", (0.35, 0.9, 1.2, 1.0, {"en-fr": 0.4, "en-zh": -0.3}))
    prediction = predict_more_tasks(study(), uncertainty=NONE)
    c1 = prediction.fit.parameters.c1.sel(task="en-de")
    np.testing.assert_allclose([c1.sel(partner="en-fr"), c1.sel(partner="en-zh")], [0.4, -0.3], rtol=1e-6)
    assert prediction.median_error < 1e-6


def test_each_task_has_a_gain_from_each_of_its_partners(exact_pairs: MoreTasks) -> None:
    fitted = exact_pairs.fit
    for task, (alpha, limit, c2, c3, gains) in LAWS.items():
        one = fitted.parameters.sel(task=task)
        np.testing.assert_allclose([one.alpha, one.l_inf, one.c2, one.c3], [alpha, limit, c2, c3], rtol=1e-6)
        for partner, gain in gains.items():
            np.testing.assert_allclose(one.c1.sel(partner=partner), gain, rtol=1e-6)
        assert np.isnan(one.c1.sel(partner=task))
        assert fitted.num_parameters(task) == 5 + 2


def test_tasks_that_were_in_no_pair_are_left_out() -> None:
    frame = study()
    alone = frame[(frame["mixture"].str.count(":") > 2) | (frame["task"] != "en-zh")]
    prediction = predict_more_tasks(alone, uncertainty=NONE)
    assert sorted(prediction.rows["task"].unique()) == ["en-de", "en-fr"]
    assert prediction.median_error < 1e-6


@pytest.mark.parametrize(
    ("mixtures", "message"),
    [
        (PAIRS, "no model of three tasks or more, to predict; add such runs with their `mixture`"),
        (TRIPLES, "no model of two tasks, to fit; add such runs with their `mixture`"),
    ],
)
def test_what_cannot_be_predicted_is_refused(mixtures: list[dict[str, float]], message: str) -> None:
    with pytest.raises(TableError, match=message):
        predict_more_tasks(rows_of(mixtures))


def test_mixtures_that_are_missing_are_asked_for() -> None:
    with pytest.raises(
        TableError, match=r"row \d+: the weights of the other tasks are not known; add a `mixture`"
    ):
        predict_more_tasks(rows_of(TRIPLES[1:2]).drop(columns=["mixture", "run"]))


def test_held_out_models_are_predicted_and_kept_from_the_fits(study_table: pd.DataFrame) -> None:
    observations = observe(study_table)
    joint, capacity = (fit(observations, law=law, uncertainty=NONE) for law in ("joint", "capacity"))
    held_out = predict_held_out(capacity)
    rows = held_out.rows
    assert len(rows) == len(observations.held_out) == 2 * 6 + 2 * 6
    assert rows["new_size"].sum() == 14
    assert rows["new_weight"].sum() == 12
    assert predict_held_out(joint).rows.loc[rows["new_weight"], "predicted"].isna().all()
    assert held_out.errors().median() < 0.02
    assert held_out.num_runs == 13
    without = study_table[study_table["role"] == "fit"]
    assert fit(without, uncertainty=NONE).parameters.equals(joint.parameters)


def test_known_limits_stand_beside_fitted_ones(clean: Observations, joint: LawFit) -> None:
    compared = compare_irreducible(joint)
    assert compared["true"].tolist() == [0.18, 0.25]
    assert (compared["difference"].abs() < 1e-8).all()
    assert compare_irreducible(fit(clean.frame.drop(columns="irreducible"), uncertainty=NONE)).empty


def test_held_out_values_are_told_with_their_sign_and_coverage(study_table: pd.DataFrame) -> None:
    loss = study_table[study_table["metric"] == "loss"]
    fitted = fit(loss, law="joint", uncertainty=ResidualBootstrap(refits=40))
    held_out = predict_held_out(fitted)
    inside, count = held_out.num_inside
    assert count == held_out.rows["predicted"].notna().sum() == 12
    assert held_out.coverage == f"{inside} of 12"
    assert inside >= 9
    assert sum(int(part.split()[0]) for part in held_out.news.split(", ")) == 12
    assert held_out.describe().startswith(
        f"The joint law predicted 12 held-out values ({held_out.news}) with"
    )
    assert f"{held_out.signs}. Of 12 95% prediction intervals, {inside} hold" in held_out.describe()
    rows = held_out.rows
    assert (rows["predicted_lower"].dropna() < rows["lower"].dropna()).all()


@pytest.mark.parametrize(("sizes", "untested"), [(3, ("size",)), (5, ())])
def test_intervals_beyond_sizes_too_few_to_test_are_said_to_lack_the_laws_error(
    laws: dict[str, TaskLaw], sizes: int, untested: tuple[str, ...]
) -> None:
    table = simulate(laws, sizes=np.geomspace(1e4, 1e6, sizes + 1), weights=(0.2, 0.5, 0.8), noise=0.002)
    largest = table["size"].eq(table["size"].max())
    fitted = fit(
        table.assign(role=np.where(largest, "held-out", "fit")), law="capacity",
        uncertainty=ResidualBootstrap(refits=5),
    )  # fmt: skip
    held_out = predict_held_out(fitted)
    assert held_out.untested == untested
    assert ("at larger sizes (it takes four" in held_out.describe()) is bool(untested)
    warnings = recommend(fitted, size=1e6).warnings
    assert any("no back-test tells how far it errs" in line for line in warnings) is bool(untested)


def test_without_held_out_runs_there_is_nothing_to_tell(clean: Observations) -> None:
    held_out = predict_held_out(fit(clean, uncertainty=NONE))
    assert held_out.rows.empty
    assert (held_out.describe(), held_out.coverage, held_out.news) == ("", "", "")


def test_more_tasks_are_predicted_by_any_law_of_whole_mixtures() -> None:
    prediction = predict_more_tasks(study(), law="transfer-capacity", uncertainty=NONE)
    assert prediction.fit.law.name == "transfer-capacity"
    assert prediction.median_error < 0.2
    with pytest.raises(ValueError, match=r"`law` must be a law of whole mixtures, .* but is capacity"):
        predict_more_tasks(study(), law="capacity")
