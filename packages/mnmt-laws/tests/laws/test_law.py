"""Every law: its derivatives, its units, and the parameters it was made with, found again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_laws import ResidualBootstrap
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.task_fit import fit_task
from mnmt_laws.laws import LAWS
from mnmt_laws.laws.capacity import Capacity
from mnmt_laws.laws.fraction import HumpFraction, LineFraction, SimplexFraction
from mnmt_laws.laws.known import example_law
from mnmt_laws.laws.law import ALPHA_BOUNDS, Law
from mnmt_laws.laws.power import Zhang
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import OBJECTIVES
from mnmt_laws.solver.sample import Sample
from mnmt_laws.solver.search import find_minima

ESTIMATE_ONLY = ResidualBootstrap(refits=0)
PARTNERS = ("en-fr", "en-ja", "en-zh")
WEIGHTS = (0.1, 0.3, 0.5, 0.8, 1.0)
NO_CEILING = ("gordon", "he", "lines", "lines-length")
RISING = [name for name in LAWS if name not in NO_CEILING]


def predictors(rng: np.random.Generator, *, partners: int = 3) -> tuple[dict[str, Array], Array]:
    """Six sizes by five weights; all else varies from run to run."""
    size, weight = (axis.ravel() for axis in np.meshgrid(np.geomspace(1e6, 1e9, 6), WEIGHTS))
    shares = rng.dirichlet(np.ones(partners), len(size)) * (1 - weight)[:, None]
    tokens = np.exp(rng.uniform(np.log(1e8), np.log(4e10), len(size)))
    encoder = rng.uniform(0.2, 0.8, len(size))
    return {
        "size": size,
        "weight": weight,
        "tokens": tokens,
        "unique_tokens": np.exp(rng.uniform(np.log(1e8), np.log(4e9), len(size))),
        "flops": 6 * size * tokens,
        "encoder_size": encoder * size,
        "decoder_size": (1 - encoder) * size,
        "partners": shares,
    }, weight


def sample_of(
    x: Mapping[str, Array], values: Array, *, rising: bool = False, ceiling: float = np.inf
) -> Sample:
    return Sample(
        task="en-de", x=dict(x), weight=x["weight"], values=values[None],
        importance=np.ones((1, len(values))),
        partners=PARTNERS[: x["partners"].shape[1]], rising=rising, ceiling=ceiling,
    )  # fmt: skip


def truth_of(law: Law, rng: np.random.Generator, sign: int = 1) -> dict[str, Array]:
    """Plausible published parameters; the ceiling of a metric that rises is about 50."""
    known = example_law(law.name, partners=PARTNERS, weights=WEIGHTS, seed=int(rng.integers(10**6)))  # type: ignore[arg-type]
    truth = {
        name: np.array([*value.values()] if isinstance(value, Mapping) else [value])
        for name, value in known.parameters.items()
    }
    limits = [parameter.name for parameter in law.parameters if parameter.kind == "limit"]
    return truth | {name: truth[name] + 45 for name in limits if sign < 0}


def anchored(law: Law, truth: Mapping[str, Array]) -> Law:
    """Return the law with the N_0 of its parameters."""
    return replace(law, n_0=float(truth["n_0"][0])) if isinstance(law, Zhang) else law


def seen(law: Law, truth: Mapping[str, Array], weight: Array) -> dict[str, Array]:
    """Each parameter as every observation sees it."""
    varies = {parameter.name: parameter.varies for parameter in law.parameters}
    group = np.searchsorted(np.unique(weight), weight)
    return {name: values[group] if varies.get(name) == "weight" else values for name, values in truth.items()}


def fitted_parameters(law: Law, sample: Sample, objective: str) -> dict[str, Array]:
    found = fit_task(
        law, sample, OBJECTIVES[objective], ESTIMATE_ONLY, runs=np.arange(len(sample.weight)), number=0
    ).parameters.isel(draw=0)
    return {str(name): np.atleast_1d(values.to_numpy()) for name, values in found.data_vars.items()}


def vector_in(
    design: DesignMatrix, rng: np.random.Generator, region: Mapping[str, tuple[float, float]]
) -> Array:
    """(P,) a point inside the bounds of a region, where every part of the prediction counts."""
    vector = np.empty(design.width)
    for block in design.blocks:
        own = block.parameter
        low, high = (0.5, 2.0) if own.linear else region.get(own.name, own.bounds)
        low, high = max(low, -5.0), min(high, 1.2 if own.kind == "exponent" else 5.0)
        vector[block.columns] = rng.uniform(
            low + 0.05 * (high - low), high - 0.05 * (high - low), len(block.labels)
        )
    columns = np.abs(design.jacobian(vector, linear=True)[1])
    vector[design.num_nonlinear :] /= [np.median(column[column > 0]) for column in columns]
    return vector


def central_differences(design: DesignMatrix, vector: Array) -> Array:
    """(P, n) derivatives, extrapolated from three steps."""
    found = np.empty((design.width, len(design.groups)))
    for column in range(design.width):
        step = np.zeros(design.width)
        step[column] = 2e-3 * max(abs(vector[column]), 0.1)
        wide, middle, narrow = (
            (design.predict(vector + step / part) - design.predict(vector - step / part))
            / (2 * step[column] / part)
            for part in (1, 2, 4)
        )
        found[column] = (64 * narrow - 20 * middle + wide) / 45
    return found


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("name", LAWS)
def test_derivatives_agree_with_central_differences(name: str, rising: bool) -> None:
    rng = np.random.default_rng(len(name))
    x, _ = predictors(rng)
    law = LAWS[name]
    design = DesignMatrix(law, sample_of(x, rng.uniform(1, 3, len(x["size"])), rising=rising))
    for region in law.regions:
        for _ in range(4):
            vector = vector_in(design, rng, region)
            predicted, jacobian = design.jacobian(vector[None])
            np.testing.assert_allclose(predicted[0], design.predict(vector), rtol=1e-14)
            scale = np.abs(jacobian[0]).max(axis=1, keepdims=True)
            numeric = central_differences(design, vector)
            np.testing.assert_allclose(jacobian[0] / scale, numeric / scale, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "rising"), [*((name, False) for name in LAWS), *((name, True) for name in RISING)]
)
def test_published_parameters_predict_in_own_units_what_the_solver_predicts(name: str, rising: bool) -> None:
    rng = np.random.default_rng(2)
    x, weight = predictors(rng)
    law = LAWS[name]
    design = DesignMatrix(law, sample_of(x, np.ones(len(weight)), rising=rising))
    vector = vector_in(design, rng, law.regions[0])
    published = {key: values[0] for key, values in design.publish(vector[None]).items()}
    own = law.predict(x, seen(law, published, weight), -1 if rising else 1)
    np.testing.assert_allclose(own, design.predict(vector), rtol=1e-10)


QUICK = (
    "power", "per-weighting", "joint", "lines", "lines-length", "length-joint", "exponent-exposure",
    "capacity", "share", "ye", "gordon",
)  # fmt: skip
FAST = {
    *((name, "log-ols") for name in QUICK),
    ("chinchilla", "ols"),
}


@pytest.mark.parametrize(
    ("name", "objective"),
    [pytest.param(name, objective, marks=() if (name, objective) in FAST else pytest.mark.slow)
     for name in LAWS for objective in ("log-ols", "ols")],
)  # fmt: skip
@given(seed=st.integers(0, 10**6))
@settings(max_examples=1)
def test_noise_free_parameters_are_recovered(name: str, objective: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, weight = predictors(rng)
    law = LAWS[name]
    truth = truth_of(law, rng)
    law = anchored(law, truth)
    values = law.predict(x, seen(law, truth, weight), 1)
    found = fitted_parameters(law, sample_of(x, values), objective)
    assert found.keys() == truth.keys()
    for parameter, expected in truth.items():
        np.testing.assert_allclose(found[parameter], expected, rtol=1e-8, err_msg=parameter)


@pytest.mark.slow
@pytest.mark.parametrize("name", RISING)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=1)
def test_metrics_that_rise_to_a_ceiling_are_recovered(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, weight = predictors(rng)
    law = LAWS[name]
    truth = truth_of(law, rng, sign=-1)
    law = anchored(law, truth)
    values = law.predict(x, seen(law, truth, weight), -1)
    found = fitted_parameters(law, sample_of(x, values, rising=True, ceiling=200.0), "ols")
    for parameter, expected in truth.items():
        np.testing.assert_allclose(found[parameter], expected, rtol=1e-8, err_msg=parameter)


def test_a_ceiling_is_never_exceeded() -> None:
    rng = np.random.default_rng(0)
    x, _ = predictors(rng)
    values = 90 + np.log(x["size"])  # a straight line in log N has no ceiling of its own
    found = fitted_parameters(LAWS["power"], sample_of(x, values, rising=True, ceiling=115.0), "ols")
    assert found["l_inf"] == 115.0


@given(seed=st.integers(0, 10**6))
@settings(max_examples=3)
def test_a_task_may_gain_from_one_partner_and_lose_by_another(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, _ = predictors(rng)
    law = LAWS["simplex-capacity"]
    gains = {"c1": np.array([0.4, -0.3, 0.1]), "c2": np.array([1.3]), "c3": np.array([0.8])}
    truth = truth_of(law, rng) | gains
    found = fitted_parameters(law, sample_of(x, law.predict(x, truth, 1)), "log-ols")
    for parameter, expected in truth.items():
        np.testing.assert_allclose(found[parameter], expected, rtol=1e-8, err_msg=parameter)


@pytest.mark.parametrize("objective", ["log-ols", "ols"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=1)
def test_with_two_tasks_the_simplex_law_is_the_capacity_law(objective: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, _ = predictors(rng, partners=1)
    sample = sample_of(x, rng.uniform(0.5, 5, len(x["size"])))
    one, many = (DesignMatrix(LAWS[name], sample) for name in ("capacity", "simplex-capacity"))
    for region in LAWS["capacity"].regions:
        vector = vector_in(one, rng, region)
        np.testing.assert_allclose(one.predict(vector), many.predict(vector), rtol=1e-13)
    measure = OBJECTIVES[objective]
    costs = [find_minima(design, measure)[0].cost for design in (one, many)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)


@given(seed=st.integers(0, 10**6), share=st.floats(0.01, 0.99))
def test_splitting_a_partner_into_two_alike_changes_nothing(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    x, _ = predictors(rng, partners=2)
    first, last = x["partners"].T
    split = x | {"partners": np.column_stack([first, share * last, (1 - share) * last])}
    gain = rng.uniform(0, 1, 2)
    shape = {"c2": np.array([0.6]), "c3": np.array([1.1])}
    whole = SimplexFraction().share(x, shape | {"c1": gain})
    halves = SimplexFraction().share(split, shape | {"c1": gain[[0, 1, 1]]})
    np.testing.assert_allclose(halves, whole, rtol=1e-14)


@given(c1=st.floats(-0.99, 10), c2=st.floats(0.01, 6), c3=st.floats(0.01, 6), slope=st.floats(-5, 1))
def test_a_task_alone_has_the_whole_model(c1: float, c2: float, c3: float, slope: float) -> None:
    alone = {"weight": np.ones(1), "partners": np.zeros((1, 2))}
    theta = {"c1": np.array([c1]), "c2": np.array([c2]), "c3": np.array([c3])}
    assert HumpFraction().share(alone, theta) == 1
    assert LineFraction().share(alone, {"c1": np.array([slope])}) == 1
    assert SimplexFraction().share(alone, theta | {"c1": np.array([c1, 2 * c1])}) == 1


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if isinstance(law, Capacity)])
@given(seed=st.integers(0, 10**6))
def test_fractions_are_above_zero_wherever_the_search_may_go(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = LAWS[name]
    assert isinstance(law, Capacity)
    x, _ = predictors(rng)
    x["weight"] = rng.uniform(1e-6, 1, len(x["size"]))
    design = DesignMatrix(law, sample_of(x, np.ones(len(x["size"]))))
    for region in law.regions:
        low, high = (bounds[0] for bounds in design.bounds(region))
        corner = np.where(rng.random(design.width) < 0.5, low, np.minimum(high, 1e3))
        assert (law.fraction.share(x, design.rowwise(corner)) > 0).all()


@pytest.mark.parametrize("name", LAWS)
def test_a_law_says_what_it_is(name: str) -> None:
    law = LAWS[name]
    assert law.name == name
    assert law.equation
    assert law.formula.startswith("L")
    kinds = [parameter.linear for parameter in law.parameters]
    assert kinds == sorted(kinds), "nonlinear parameters come first"
    assert all(p.bounds == ALPHA_BOUNDS for p in law.parameters if p.kind == "exponent")
    for parameter in law.parameters:
        assert parameter.meaning
        assert bool(parameter.starts) is not parameter.linear
        low, high = parameter.bounds
        assert all(low <= start <= high for start in parameter.starts)
