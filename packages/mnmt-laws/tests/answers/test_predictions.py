"""Held-out runs, and models of three tasks, are predicted from what was fitted."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import (
    HeldOut,
    KnownLaw,
    LawFit,
    Observations,
    ResidualBootstrap,
    compare_irreducible,
    fit,
    observe,
    predict_held_out,
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


def predict_triples(rows: pd.DataFrame) -> HeldOut:
    """Predict models of three tasks by the law of those of one and two."""
    triple = rows["mixture"].str.count(":") > 2
    rows = rows.assign(role=np.where(triple, "held-out", "fit"))
    return predict_held_out(fit(rows, law="simplex-capacity", uncertainty=NONE))


def test_three_tasks_follow_from_their_pairs() -> None:
    rows = predict_triples(study()).rows
    assert len(rows) == len(SIZES) * len(TRIPLES) * 3
    columns = (rows[name].tolist() for name in ("task", "size", "mixture"))
    expected = [
        loss(task, size, parse_mixture(mixture, "row")) for task, size, mixture in zip(*columns, strict=True)
    ]
    np.testing.assert_allclose(rows["predicted"], expected, rtol=1e-6)
    assert rows[["lower", "upper"]].isna().all(axis=None)


def test_held_out_models_are_predicted_and_kept_from_the_fits(study_table: pd.DataFrame) -> None:
    observations = observe(study_table)
    joint, capacity = (fit(observations, law=law, uncertainty=NONE) for law in ("joint", "capacity"))
    held_out = predict_held_out(capacity)
    rows = held_out.rows
    assert len(rows) == len(observations.held_out) == 2 * 6 + 2 * 6
    assert rows["new_size"].sum() == 14
    assert rows["side"].ne("").equals(rows["new_size"])
    assert rows["new_weight"].sum() == 12
    assert predict_held_out(joint).rows.loc[rows["new_weight"], "predicted"].isna().all()
    assert held_out.errors().median() < 0.02
    assert held_out.num_runs == 13
    without = study_table[study_table["role"] == "fit"]
    assert fit(without, uncertainty=NONE).parameters.equals(joint.parameters)


@pytest.mark.parametrize(("place", "side"), [(0, "below"), (2, "between"), (-1, "above")])
def test_a_held_out_size_lies_between_those_fitted_or_on_one_side(
    clean: Observations, place: int, side: str
) -> None:
    sizes = np.sort(clean.frame["size"].unique())
    role = np.where(clean.frame["size"] == sizes[place], "held-out", "fit")
    held_out = predict_held_out(fit(clean.frame.assign(role=role), uncertainty=NONE))
    assert set(held_out.rows["side"]) == {side}
    assert held_out.news == f"{len(held_out.errors())} at a size {side} those fitted"


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
    rows = held_out.rows.dropna(subset="predicted_lower")
    assert (rows["predicted_lower"] < rows["lower"]).all()
    width = rows["predicted_upper"] - rows["predicted_lower"]
    assert held_out.width == pytest.approx(float(np.median(width / rows["predicted"])))
    reducible = rows["predicted"] - rows["task"].map(fitted.observations.irreducible_of)
    assert held_out.reducible_width == pytest.approx(float(np.median(width / reducible)))
    assert f"{held_out.width:.1%} of the prediction" in held_out.describe()
    wrong = np.log((rows["observed"] - rows["irreducible"]) / reducible).abs()
    np.testing.assert_allclose(held_out.reducible_errors(), wrong)


def test_an_interval_that_a_constant_lies_in_is_counted() -> None:
    rows = pd.DataFrame(
        {"run": ["a", "b"], "task": "t", "size": 1.0, "mixture": "", "weight": 1.0, "observed": [2.0, 3.0],
         "predicted": [2.0, 3.2], "predicted_lower": [1.5, 3.1], "predicted_upper": [2.5, 3.3],
         "error": [0.0, -0.06], "irreducible": np.nan, "constant": 2.2, "new_size": True, "new_length": False,
         "new_weight": False}
    )  # fmt: skip
    held_out = HeldOut(law="power", rows=rows)
    assert (held_out.num_constant, held_out.num_inside) == (1, (1, 2))
    assert held_out.width == pytest.approx(np.median([0.5, 0.0625]))
    assert np.isnan(held_out.reducible_width)
    assert held_out.reducible_errors().empty


@pytest.mark.parametrize(("sizes", "untested"), [(3, ("size",)), (5, ())])
def test_intervals_beyond_sizes_too_few_to_test_are_said_to_lack_the_laws_error(
    laws: dict[str, KnownLaw], sizes: int, untested: tuple[str, ...]
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
