"""What follows from fits: effective fractions, frontiers, recommendations, held-out runs, claims."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import (
    Observations,
    Perturbation,
    TaskLaw,
    check_claims,
    compare_irreducible,
    effective_fractions,
    fit,
    fitted_fraction,
    observe,
    predict_held_out,
    simulate,
)

NONE = Perturbation(refits=0)
FEW = Perturbation(refits=30)


def test_fractions_are_those_the_losses_were_made_with(clean: Observations, laws: dict[str, TaskLaw]) -> None:
    effective = effective_fractions(fit(clean, uncertainty=FEW))
    for task, law in laws.items():
        own = effective.fractions.sel(task=task)
        weights = own.weight.values
        expected = weights + law.c1 * weights**law.c2 * (1 - weights) ** law.c3
        np.testing.assert_allclose(own.value, expected, rtol=1e-7)
        assert float(own.value.sel(weight=1.0)) == 1.0
        assert (own.interval.sel(bound="lower") <= own.value).all()
        assert (own.interval.sel(bound="upper") >= own.value).all()


def test_effective_size_gives_the_single_task_loss(clean: Observations) -> None:
    joint = fit(clean, uncertainty=NONE)
    size = effective_fractions(joint).effective_size(1e6).sel(task="en-de", weight=0.3)
    alone = joint.predict(size=float(size), task="en-de", weight=1.0)
    assert alone == pytest.approx(joint.predict(size=1e6, task="en-de", weight=0.3))


def test_without_single_task_runs_fractions_are_unknown(clean: Observations) -> None:
    mixed = clean.frame[clean.frame["weight"] < 1]
    effective = effective_fractions(fit(observe(mixed), uncertainty=NONE))
    assert effective.fractions.value.isnull().all()
    assert (
        effective.warnings[0]
        == "en-de: no run at weight 1, so its effective fraction of parameters is unknown."
    )


def test_one_task_without_single_task_runs_leaves_the_other_known(clean: Observations) -> None:
    frame = clean.frame[(clean.frame["weight"] < 1) | (clean.frame["task"] == "en-de")]
    effective = effective_fractions(fit(observe(frame), uncertainty=FEW))
    assert effective.fractions.value.sel(task="en-de").notnull().all()
    assert effective.fractions.value.sel(task="en-zh").isnull().all()
    assert len(effective.warnings) == 1


def test_fitted_fraction_is_one_at_weight_one_and_positive(clean: Observations) -> None:
    capacity = fit(clean, law="capacity", uncertainty=NONE)
    assert fitted_fraction(capacity, task="en-de", weight=1.0) == 1.0
    assert (fitted_fraction(capacity, task="en-de", weight=np.linspace(1e-6, 1, 500)) > 0).all()


def test_fractions_below_the_weight_are_fitted_too() -> None:
    laws = {name: TaskLaw(alpha=0.5, beta=200, l_inf=0.3, c1=-0.4, c2=1.2, c3=1.0) for name in ("a", "b")}
    table = observe(simulate(laws, sizes=(1e4, 3e4, 1e5, 3e5), weights=(0.0, 0.2, 0.4, 0.5, 0.8, 1.0)))
    capacity = fit(table, law="capacity", uncertainty=NONE)
    np.testing.assert_allclose(capacity.parameters.c1, -0.4, rtol=1e-6)
    assert (fitted_fraction(capacity, task="a", weight=np.linspace(1e-6, 1, 500)) > 0).all()


def test_fraction_functions_want_their_own_law(clean: Observations) -> None:
    joint = fit(clean, uncertainty=NONE)
    with pytest.raises(ValueError, match="must be a fit of a capacity law, but is of the joint law"):
        fitted_fraction(joint, task="en-de", weight=0.5)
    with pytest.raises(ValueError, match="must be a fit of the joint law"):
        effective_fractions(fit(clean, law="capacity", uncertainty=NONE))


def test_held_out_models_are_predicted_and_kept_from_the_fits(study_table: pd.DataFrame) -> None:
    observations = observe(study_table)
    joint, capacity = (fit(observations, law=law, uncertainty=NONE) for law in ("joint", "capacity"))
    rows = predict_held_out(capacity=capacity, joint=joint).rows
    assert len(rows) == len(observations.held_out) == 2 * 6 + 2 * 6
    assert rows["new_size"].sum() == 14
    assert rows["new_weight"].sum() == 12
    assert rows.loc[rows["new_weight"], "joint"].isna().all()
    assert rows["capacity_error"].abs().median() < 0.02
    without = observe(study_table[study_table["role"] == "fit"])
    assert fit(without, uncertainty=NONE).parameters.equals(joint.parameters)


def test_known_limits_stand_beside_fitted_ones(clean: Observations) -> None:
    compared = compare_irreducible(fit(clean, uncertainty=FEW))
    assert compared["true"].tolist() == [0.18, 0.25]
    assert (compared["difference"].abs() < 1e-8).all()
    assert compare_irreducible(fit(_without_irreducible(clean), uncertainty=NONE)).empty


def _without_irreducible(observations: Observations) -> Observations:
    return observe(observations.frame.drop(columns="irreducible"))


def claims_of(observations: Observations) -> dict[tuple[str, str], bool | None]:
    per_weighting, joint = (fit(observations, law=law, uncertainty=FEW) for law in ("per-weighting", "joint"))
    claims = check_claims(per_weighting=per_weighting, joint=joint, effective=effective_fractions(joint))
    return {(claim.about, claim.task): claim.holds for claim in claims}


def test_claims_hold_where_the_laws_do(clean: Observations) -> None:
    assert set(claims_of(clean).values()) == {True}


def test_a_limit_that_moves_with_the_weight_is_noticed(clean: Observations) -> None:
    frame = clean.frame.assign(value=clean.frame["value"] + 2.0 * (1 - clean.frame["weight"]))
    verdicts = claims_of(observe(frame))
    assert verdicts["l_inf", "en-de"] is False
    assert verdicts["joint", "en-de"] is False
