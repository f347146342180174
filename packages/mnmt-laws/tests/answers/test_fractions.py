"""Effective fractions are those that the losses were made with."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import (
    KnownLaw,
    LawFit,
    Observations,
    Perturbation,
    effective_fractions,
    effective_size,
    fit,
    fitted_fraction,
    fractions_by_size,
    simulate,
)

NONE = Perturbation(refits=0)


def test_fractions_are_those_the_losses_were_made_with(joint: LawFit, laws: dict[str, KnownLaw]) -> None:
    effective = effective_fractions(joint)
    for task, law in laws.items():
        fractions = effective.fractions.sel(task=task)
        weights = fractions.weight.values
        c1, c2, c3 = (law.parameters[name] for name in ("c1", "c2", "c3"))
        expected = weights + c1 * weights**c2 * (1 - weights) ** c3
        np.testing.assert_allclose(fractions.value, expected, rtol=1e-7)
        assert float(fractions.value.sel(weight=1.0)) == 1.0
        assert (fractions.interval.sel(bound="lower") <= fractions.value).all()
        assert (fractions.interval.sel(bound="upper") >= fractions.value).all()


def test_effective_size_gives_the_single_task_loss(exact: LawFit) -> None:
    size = effective_size(exact, task="en-de", size=1e6, weight=0.3)
    alone = exact.predict(size=float(size), task="en-de", weight=1.0)
    assert alone == pytest.approx(exact.predict(size=1e6, task="en-de", weight=0.3))


def test_without_single_task_runs_fractions_are_unknown(clean: Observations) -> None:
    mixed = clean.frame[clean.frame["weight"] < 1]
    effective = effective_fractions(fit(mixed, uncertainty=NONE))
    assert effective.fractions.value.isnull().all()
    assert (
        effective.warnings[0]
        == "en-de: no run at weight 1, so its effective fraction of parameters is unknown."
    )


def test_fitted_fraction_is_one_at_weight_one_and_positive(exact: LawFit) -> None:
    assert fitted_fraction(exact, task="en-de", weight=1.0) == 1.0
    assert (fitted_fraction(exact, task="en-de", weight=np.linspace(1e-6, 1, 500)) > 0).all()


def test_fractions_below_the_weight_are_fitted_too() -> None:
    laws = {
        name: KnownLaw.capacity(alpha=0.5, beta=200, l_inf=0.3, c1=-0.4, c2=1.2, c3=1.0)
        for name in ("a", "b")
    }
    table = simulate(laws, sizes=(1e4, 3e4, 1e5, 3e5), weights=(0.0, 0.2, 0.4, 0.5, 0.8, 1.0))
    capacity = fit(table, law="capacity", uncertainty=NONE)
    np.testing.assert_allclose(capacity.parameters.c1, -0.4, rtol=1e-6)
    assert (fitted_fraction(capacity, task="a", weight=np.linspace(1e-6, 1, 500)) > 0).all()


def test_fractions_are_read_without_a_law_where_single_task_models_reach_the_loss() -> None:
    sizes, share = np.array([1e4, 4e4, 1.6e5, 6.4e5]), 0.5
    alone = pd.DataFrame({"size": sizes, "weight": 1.0, "value": 9 - 0.3 * np.log(sizes)})
    mixed = alone.assign(weight=0.25, value=9 - 0.3 * np.log(share * sizes))
    better = mixed.assign(weight=0.75, value=9 - 0.3 * np.log(2 * sizes))
    table = pd.concat([alone, mixed, better]).assign(task="aa", metric="loss")
    table["mixture"] = [f"aa:{p},bb:{1 - p}" if p < 1 else "aa:1.0" for p in table["weight"]]
    read = fractions_by_size(table).set_index(["weight", "size"])
    np.testing.assert_allclose(read["value"].loc[0.25], [np.nan, share, share, share])
    np.testing.assert_allclose(read.loc[(0.25, 1e4), ["lower", "upper"]].to_numpy(float), [0, 1])
    np.testing.assert_allclose(read["value"].loc[0.75], [2, 2, 2, np.nan])
    np.testing.assert_allclose(read.loc[(0.75, 6.4e5), ["lower", "upper"]].to_numpy(float), [1, np.inf])
    rising = fractions_by_size(table.assign(metric="chrf", value=-table["value"] + 20))
    np.testing.assert_allclose(rising["value"], read["value"])


def test_fractions_need_a_fit_of_their_law(joint: LawFit, exact: LawFit) -> None:
    with pytest.raises(
        ValueError, match="`fit` must be a fit of a law with an effective fraction, such as capacity"
    ):
        fitted_fraction(joint, task="en-de", weight=0.5)
    with pytest.raises(ValueError, match="must be a fit of the joint law"):
        effective_fractions(exact)
