"""Weak priors: when fits have them, what they change, and whether intervals hold the truth under them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mnmt_laws import Observations, Perturbation, ResidualBootstrap, fit, observe
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.refits import refit_copies
from mnmt_laws.laws import LAWS
from mnmt_laws.laws.prior import EXPONENT

ESTIMATE_ONLY = ResidualBootstrap(refits=0)


def few_runs(
    seed: int, *, sizes: int = 4, tasks: int = 3, alpha: float = 0.3, noise: float = 0.02
) -> Observations:
    """Losses of some tasks whose exponents lie about a common one, and their truth in `irreducible`."""
    rng = np.random.default_rng(seed)
    size = np.geomspace(1e6, 3e7, sizes)
    frames = []
    for task in range(tasks):
        exponent = alpha * np.exp(0.15 * rng.standard_normal())
        loss = rng.uniform(1, 2) + rng.uniform(0.4, 1) * (size / 5e6) ** -exponent
        value = loss * (1 + noise * rng.standard_normal(4))
        frames.append(pd.DataFrame({"size": size, "value": value, "task": f"t{task}"}))
    return observe(pd.concat(frames).assign(weight=1.0, metric="loss"))


def test_fits_to_much_data_have_no_priors_and_fits_to_little_say_that_they_have(clean: Observations) -> None:
    much = [
        fit(clean, law="capacity", uncertainty=ResidualBootstrap(refits=3), prior=p) for p in ("auto", "none")
    ]  # type: ignore[arg-type]
    assert much[0].prior == "none"
    xr.testing.assert_equal(much[0].draws, much[1].draws)
    little = fit(few_runs(0), law="power", uncertainty=ESTIMATE_ONLY)
    assert little.prior == "weak"
    assert "prior weak, tasks about alpha 0." in repr(little)
    assert [line.kind for line in little.diagnostics] == ["prior"]


def test_laws_that_describe_each_weight_by_itself_are_not_pooled_unless_asked() -> None:
    table = few_runs(0)
    assert fit(table, law="per-weighting", uncertainty=ESTIMATE_ONLY).prior == "none"
    assert fit(table, law="per-weighting", uncertainty=ESTIMATE_ONLY, prior="weak").prior == "weak"
    assert fit(table, law="lines", uncertainty=ESTIMATE_ONLY).prior == "weak"


def test_another_prior_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`prior` must be auto, weak or none, but is 'strong'"):
        fit(few_runs(0), law="power", prior="strong")  # type: ignore[arg-type]


def common_exponent(tasks: int) -> float:
    """The common mean of α of some tasks with exponents near 1."""
    table = few_runs(1, tasks=tasks, alpha=1.0, noise=0.01)
    prior = fit(table, law="power", uncertainty=ESTIMATE_ONLY).parameters.attrs["prior"]
    return float(prior.split("alpha ")[1].split()[0])


def test_tasks_that_agree_move_the_common_mean_away_from_its_centre() -> None:
    assert EXPONENT.centre < common_exponent(tasks=1) < common_exponent(tasks=8)
    assert common_exponent(tasks=8) == pytest.approx(1.0, rel=0.25)


def test_estimates_under_priors_lie_nearer_to_the_truth() -> None:
    errors = {"weak": [], "none": []}  # type: dict[str, list[float]]
    for seed in range(6):
        table = few_runs(seed)
        for prior, found in errors.items():
            alpha = fit(table, law="power", uncertainty=ESTIMATE_ONLY, prior=prior).parameters["alpha"]  # type: ignore[arg-type]
            found.extend(np.abs(np.log(alpha.to_numpy() / 0.3)))
    assert np.mean(errors["weak"]) < 0.5 * np.mean(errors["none"])


@pytest.mark.parametrize("method", [ResidualBootstrap(refits=100), Perturbation(refits=100, share=0.02)])
def test_intervals_under_priors_hold_the_exponent(method: ResidualBootstrap | Perturbation) -> None:
    inside = []
    for seed in range(8):
        interval = fit(few_runs(seed), law="power", uncertainty=method).interval()["alpha"]
        inside.extend(((interval.sel(bound="lower") < 0.3) & (interval.sel(bound="upper") > 0.3)).to_numpy())
    assert np.mean(inside) > 0.9


def test_supplied_resamples_keep_the_priors_where_they_are() -> None:
    found = fit(few_runs(2), law="power", uncertainty=ESTIMATE_ONLY)
    again = refit_copies(found, values=found.rows["value"].to_numpy(float)[None])
    for name, values in found.parameters.data_vars.items():
        np.testing.assert_allclose(again[name].isel(draw=0), values, rtol=1e-4)


def test_data_determine_a_part_of_the_parameters() -> None:
    found = fit(few_runs(4), law="power", uncertainty=ESTIMATE_ONLY)
    free = fit(few_runs(4), law="power", uncertainty=ESTIMATE_ONLY, prior="none")
    for task in found.tasks:
        assert 1 < found.num_parameters(task) < free.num_parameters(task) == 3


def test_every_shape_and_exponent_has_a_prior_within_its_bounds() -> None:
    for law in LAWS.values():
        for parameter in law.parameters:
            prior = parameter.weak_prior
            assert (prior is None) == (parameter.kind == "factor")
            if prior is not None and prior.scale != "loss":
                assert parameter.bounds[0] <= prior.centre <= parameter.bounds[1]
