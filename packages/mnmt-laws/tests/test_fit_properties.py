"""What must hold of fits to any table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_laws import Observations, Perturbation, TableError, TaskLaw, fit, read_table, select, simulate
from mnmt_laws.laws import LawName

LAW_NAMES: tuple[LawName, ...] = ("per-weighting", "joint", "capacity")
OBJECTIVES = ("log-ols", "ols")
ESTIMATE_ONLY = Perturbation(refits=0)
SIZES = (2e7, 6e7, 1.3e8, 3.4e8, 1e9)
WEIGHTS = (0.05, 0.2, 0.5, 0.8, 1.0)


def random_table(seed: int, *, sizes: int = 5, weights: int = 3) -> pd.DataFrame:
    """Losses between 0.5 and 5 that obey no law."""
    rng = np.random.default_rng(seed)
    cells = [
        (size, weight) for size in np.geomspace(1e6, 1e9, sizes) for weight in np.linspace(0.2, 1, weights)
    ]
    return pd.DataFrame(
        {
            "size": [size for size, _ in cells],
            "weight": [weight for _, weight in cells],
            "task": "en-de",
            "metric": "loss",
            "value": rng.uniform(0.5, 5.0, len(cells)),
        }
    )


def observe(table: pd.DataFrame) -> Observations:
    return select(read_table(table))


task_laws = st.builds(
    TaskLaw,
    alpha=st.floats(0.15, 1.2),
    beta=st.floats(50.0, 5000.0),
    l_inf=st.floats(0.05, 2.0),
    c1=st.floats(0.05, 0.5),
    c2=st.floats(0.3, 1.2),
    c3=st.floats(0.5, 1.5),
)


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(law=task_laws)
@settings(max_examples=20, deadline=None)
def test_noise_free_coefficients_are_recovered(objective: str, law: TaskLaw) -> None:
    other = TaskLaw(alpha=0.3, beta=200, l_inf=1.0)
    pivot = float(np.exp(np.mean(np.log(SIZES))))
    # A loss of 1 above the limit at the pivot size: where nothing is left to learn, nothing can be recovered.
    law = TaskLaw(**{**vars(law), "beta": pivot**law.alpha})
    table = observe(simulate({"a": law, "b": other}, sizes=SIZES, weights=WEIGHTS))
    per_weighting, joint, capacity = (
        fit(table, law=name, objective=objective, uncertainty=ESTIMATE_ONLY).parameters.sel(task="a")
        for name in LAW_NAMES
    )
    own = [weight for weight in WEIGHTS if weight in joint.beta.dropna("weight").weight]
    np.testing.assert_allclose(per_weighting.alpha.sel(weight=own), law.alpha, rtol=1e-8)
    np.testing.assert_allclose(per_weighting.l_inf.sel(weight=own), law.l_inf, rtol=1e-7)
    np.testing.assert_allclose([joint.alpha, joint.l_inf], [law.alpha, law.l_inf], rtol=1e-8)
    np.testing.assert_allclose(joint.beta.sel(weight=1.0), law.beta, rtol=1e-7)
    expected = [law.alpha, law.beta, law.l_inf, law.c1, law.c2, law.c3]
    found = [float(capacity[name]) for name in ("alpha", "beta", "l_inf", "c1", "c2", "c3")]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("law", LAW_NAMES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_row_order_does_not_matter(law: LawName, seed: int) -> None:
    table = random_table(seed)
    shuffled = table.sample(frac=1, random_state=seed)
    few = Perturbation(refits=2)
    one, two = (fit(observe(rows), law=law, uncertainty=few) for rows in (table, shuffled))
    xr.testing.assert_identical(one.parameters, two.parameters)
    xr.testing.assert_identical(one.draws, two.draws)


@pytest.mark.parametrize("law", LAW_NAMES)
@given(scale=st.sampled_from([1e-6, 1e-3, 7.0]))
@settings(max_examples=3, deadline=None)
def test_the_unit_of_size_moves_beta_only(law: LawName, scale: float) -> None:
    laws = {"a": TaskLaw(alpha=0.4, beta=900, l_inf=0.8), "b": TaskLaw(alpha=0.3, beta=200, l_inf=1.0)}
    table = simulate(laws, sizes=SIZES, weights=WEIGHTS, noise=0.002)
    one, two = (
        fit(observe(rows), law=law, uncertainty=ESTIMATE_ONLY).parameters
        for rows in (table, table.assign(size=table["size"] * scale))
    )
    np.testing.assert_allclose(one.alpha, two.alpha, rtol=1e-5)
    np.testing.assert_allclose(one.l_inf, two.l_inf, rtol=1e-5)
    np.testing.assert_allclose(one.beta * scale**one.alpha, two.beta, rtol=1e-4)


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_a_law_with_more_freedom_never_fits_worse(objective: str, seed: int) -> None:
    table = observe(random_table(seed))
    separate, joint, capacity = (
        np.sum(fit(table, law=name, objective=objective, uncertainty=ESTIMATE_ONLY).residuals() ** 2)
        for name in LAW_NAMES
    )
    assert separate <= joint * (1 + 1e-9)
    assert joint <= capacity * (1 + 1e-6)


@pytest.mark.parametrize("law", LAW_NAMES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_bounds_are_never_left(law: LawName, seed: int) -> None:
    table = observe(random_table(seed))
    fitted = fit(table, law=law, uncertainty=ESTIMATE_ONLY).parameters
    assert float(fitted.beta.min()) >= 0
    assert float(fitted.l_inf.min()) >= 0
    lowest = table.fit.groupby("weight")["value"].min()
    if "weight" in fitted.l_inf.dims:
        assert (fitted.l_inf.sel(task="en-de").values <= lowest.to_numpy()).all()
    else:
        assert float(fitted.l_inf.max()) <= lowest.min()
    assert 0.01 * (1 - 1e-12) <= float(fitted.alpha.min()) <= float(fitted.alpha.max()) <= 4.0 * (1 + 1e-12)


def test_parameters_at_a_bound_are_reported() -> None:
    table = random_table(0, weights=1)
    table["value"] = np.linspace(1.0, 2.0, len(table))  # rises with size: no falling power law fits
    fitted = fit(observe(table), law="joint", uncertainty=ESTIMATE_ONLY)
    assert any("l_inf is at its upper bound" in warning or "beta" in warning for warning in fitted.warnings)


def test_refits_are_the_same_every_time_and_grow_with_the_noise(clean: Observations) -> None:
    one, two, louder = (
        fit(clean, uncertainty=Perturbation(share=share, refits=20, seed=5)).std
        for share in (0.01, 0.01, 0.02)
    )
    xr.testing.assert_identical(one, two)
    assert (louder.alpha > one.alpha).all()


def test_interval_brackets_the_estimate_and_units_are_named(clean: Observations) -> None:
    fitted = fit(clean, uncertainty=Perturbation(refits=50))
    interval = fitted.interval()
    assert (interval.alpha.sel(bound="lower") < fitted.parameters.alpha).all()
    assert (interval.alpha.sel(bound="upper") > fitted.parameters.alpha).all()
    assert fitted.parameters.l_inf.attrs["units"] == "nats per token"
    assert fitted.parameters.attrs["equation"] == "Fernandes et al. 2023, eq. 7"


def test_a_rising_metric_obeys_the_same_laws(clean: Observations) -> None:
    frame = clean.frame.assign(metric="chrf", value=60.0 - 10.0 * clean.frame["value"])
    chrf = select(read_table(frame), metric="chrf")
    falling, rising = (
        fit(rows, objective="ols", uncertainty=ESTIMATE_ONLY).parameters for rows in (clean, chrf)
    )
    np.testing.assert_allclose(rising.alpha, falling.alpha, rtol=1e-6)
    np.testing.assert_allclose(rising.l_inf, 60.0 - 10.0 * falling.l_inf, rtol=1e-6)


def test_predict_takes_arrays_and_names_what_it_does_not_know(clean: Observations) -> None:
    joint = fit(clean, uncertainty=ESTIMATE_ONLY)
    assert joint.predict(size=[1e4, 1e5, 1e6], task="en-de", weight=0.5).shape == (3,)
    assert joint.predict(size=1e4, task="en-de", weight=0.5).shape == ()
    with pytest.raises(ValueError, match=r"one of en-de, en-zh, but is 'en-fr'"):
        joint.predict(size=1e4, task="en-fr", weight=0.5)
    with pytest.raises(ValueError, match=r"one of the fitted weights \(0.1, 0.3, 0.5, 0.7, 0.9, 1\)"):
        joint.predict(size=1e4, task="en-de", weight=0.4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"law": "eq7"}, "`law` must be one of power, per-weighting, joint, .*, but is 'eq7'"),
        ({"objective": "l2"}, "`objective` must be one of log-ols, ols, lad, huber, but is 'l2'"),
        ({"delta": 0.1}, "`delta` must be above 0 and goes with huber, but is 0.1 with log-ols"),
    ],
)
def test_unknown_choices_are_named(clean: Observations, change: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(clean, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(("change", "message"), [({"share": 0.0}, "`share`"), ({"refits": -1}, "`refits`")])
def test_perturbation_validates_itself(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Perturbation(**change)  # type: ignore[arg-type]


def of_sizes(observations: Observations, count: int) -> Observations:
    frame = observations.frame
    return select(read_table(frame[frame["size"].isin(frame["size"].unique()[:count])]))


@pytest.mark.parametrize("law", ["joint", "capacity", "power"])
def test_two_sizes_are_reported_as_data(clean: Observations, law: LawName) -> None:
    fitted = fit(of_sizes(clean, 2), law=law, uncertainty=ESTIMATE_ONLY)
    reported = [line for line in fitted.diagnostics if line.kind == "unidentified"]
    assert any("2 sizes do not identify the exponents and the limit" in line.message for line in reported)


def test_what_cannot_be_fitted_at_all_is_refused(clean: Observations) -> None:
    with pytest.raises(TableError, match="needs at least 3 sizes at one weight, but has 2"):
        fit(of_sizes(clean, 2), law="per-weighting")
    with pytest.raises(
        TableError, match=r"row \d+: en-de has one size only \(9456\); a law needs at least 3"
    ):
        fit(of_sizes(clean, 1), law="joint")


def test_weights_with_two_sizes_are_left_out_of_separate_fits_aloud(clean: Observations) -> None:
    frame = clean.frame
    short = frame[~((frame["weight"] == 0.3) & (frame["size"] > 25000))]
    fitted = fit(select(read_table(short)), law="per-weighting", uncertainty=ESTIMATE_ONLY)
    assert "en-de at weight 0.3: left out, has fewer than 3 sizes." in fitted.warnings
    assert 0.3 not in fitted.fitted_weights("en-de")


def test_too_few_weights_leave_the_fraction_unidentified(clean: Observations) -> None:
    few = clean.frame[clean.frame["weight"].isin([0.5, 0.7, 0.3])]
    fitted = fit(select(read_table(few[few["weight"] != 0.3])), law="capacity", uncertainty=ESTIMATE_ONLY)
    assert any("c1, c2, c3 and beta are not identified" in warning for warning in fitted.warnings)
    assert any("no run at weight 1" in warning for warning in fitted.warnings)


def test_log_ols_refuses_values_that_have_no_logarithm(clean: Observations) -> None:
    frame = clean.frame.assign(metric="bleu")
    frame.loc[0, "value"] = 0.0
    with pytest.raises(TableError, match=r"row \d+: log-ols needs values above 0; use --objective ols"):
        fit(select(read_table(frame), metric="bleu"))
