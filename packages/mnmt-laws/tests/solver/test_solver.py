"""Parts of the solver: objectives, repeated measurements, projection, and the search as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from mnmt_laws.laws import LAWS
from mnmt_laws.solver.descent import Problem, project
from mnmt_laws.solver.design_matrix import DesignMatrix, find_unidentified
from mnmt_laws.solver.objective import OBJECTIVES, Objective, find_objective
from mnmt_laws.solver.sample import Replicates, Sample
from mnmt_laws.solver.search import find_minima, refit


def random_sample(rng: np.random.Generator, *, repeats: int = 1, copies: int = 1) -> Sample:
    """Five sizes by three weights, each measured some times; values that obey no law."""
    size, weight = (
        np.tile(axis.ravel(), repeats) for axis in np.meshgrid(np.geomspace(1e6, 1e9, 5), [0.2, 0.5, 1.0])
    )
    shape = (copies, len(size))
    return Sample(
        task="en-de", x={"size": size, "weight": weight}, weight=weight,
        values=rng.uniform(0.5, 5.0, shape), importance=rng.uniform(0.2, 3.0, shape),
    )  # fmt: skip


def cost_of(objective: Objective, design: DesignMatrix, sample: Sample, vector: np.ndarray) -> float:
    """The objective over all rows, condensed or not."""
    residual = objective.residual(sample.values[0], DesignMatrix(design.law, sample).predict(vector))
    return float(objective.value(residual, sample.importance[0]))


@pytest.mark.parametrize("name", OBJECTIVES)
@given(residual=st.floats(-0.5, 0.5).filter(lambda r: abs(r) > 1e-5))
@settings(max_examples=40, deadline=None)
def test_reweighting_is_the_derivative_of_the_cost(name: str, residual: float) -> None:
    objective, one = OBJECTIVES[name], np.ones(1)
    step = 1e-6 * abs(residual)
    up, down = (objective.cost(np.array([residual + move]), one) for move in (step, -step))
    weight = objective.reweighting(np.array([residual]))[0]
    assert weight * residual == pytest.approx((up - down) / (2 * step), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("log-ols", 0.5 * np.log(2) ** 2),
        ("ols", 0.5),
        ("lad", np.log(2)),
        ("huber", 1e-3 * (np.log(2) - 5e-4)),
    ],
)
def test_what_each_objective_makes_of_a_prediction_twice_too_high(name: str, expected: float) -> None:
    objective = OBJECTIVES[name]
    residual = objective.residual(np.array([1.0]), np.array([2.0]))
    assert objective.value(residual, np.array([3.0])) == pytest.approx(3 * expected, rel=1e-12)


def test_huber_between_squares_and_absolute_values() -> None:
    residual, one = np.array([0.3]), np.ones(1)
    wide = find_objective("huber", delta=1.0).value(residual, one)
    assert wide == OBJECTIVES["log-ols"].value(residual, one)
    narrow = find_objective("huber", delta=1e-9).value(residual, one)
    assert narrow / 1e-9 == pytest.approx(OBJECTIVES["lad"].value(residual, one), rel=1e-8)


@pytest.mark.parametrize(
    ("name", "delta", "message"),
    [
        ("mse", None, "`objective` must be one of log-ols, ols, lad, huber, but is 'mse'"),
        ("huber", 0.0, "`delta` must be above 0 and goes with huber, but is 0.0 with huber"),
        ("lad", 0.1, "`delta` must be above 0 and goes with huber, but is 0.1 with lad"),
    ],
)
def test_what_is_no_objective_is_refused(name: str, delta: float | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_objective(name, delta=delta)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_prediction_below_zero_has_a_finite_cost(name: str) -> None:
    objective = OBJECTIVES[name]
    residual = objective.residual(np.array([1.0]), np.array([-0.5]))
    assert np.isfinite(objective.cost(residual, np.ones(1)))
    assert np.isfinite(objective.slope(np.array([-0.5]))).all()


@pytest.mark.parametrize("name", ["log-ols", "ols"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_condensed_cells_rank_parameters_as_all_rows_do(name: str, seed: int) -> None:
    rng, objective = np.random.default_rng(seed), OBJECTIVES[name]
    sample = random_sample(rng, repeats=3)
    condensed = Replicates.of(sample, objective).condense(sample, objective)
    assert len(condensed.weight) == 15
    assert condensed.importance.sum() == pytest.approx(sample.importance.sum())
    design = DesignMatrix(LAWS["joint"], sample)
    vectors = rng.uniform(0.1, 1.0, (2, design.width))
    long, short = ([cost_of(objective, design, rows, v) for v in vectors] for rows in (sample, condensed))
    assert np.diff(long) == pytest.approx(np.diff(short), rel=1e-9)


@pytest.mark.parametrize("name", ["lad", "huber"])
def test_what_is_no_sum_of_squares_keeps_every_row(name: str) -> None:
    sample = random_sample(np.random.default_rng(0), repeats=2)
    assert Replicates.of(sample, OBJECTIVES[name]).condense(sample, OBJECTIVES[name]) is sample


@pytest.mark.parametrize("rising", [False, True])
def test_limits_keep_to_the_most_extreme_row_of_a_cell_not_to_its_mean(rising: bool) -> None:
    size, weight = np.array([1e6, 1e6, 1e7]), np.ones(3)
    sample = Sample(
        task="en-de", x={"size": size, "weight": weight}, weight=weight, values=np.array([[3.0, 5.0, 4.5]]),
        importance=np.ones((1, 3)), rising=rising, ceiling=100.0,
    )  # fmt: skip
    design = DesignMatrix(
        LAWS["power"], Replicates.of(sample, OBJECTIVES["ols"]).condense(sample, OBJECTIVES["ols"])
    )
    low, high = (bounds[0, -1] for bounds in design.bounds({}))
    assert (low, high) == ((5.0, 100.0) if rising else (0.0, 3.0))


def test_rows_without_importance_do_not_bound_the_limit() -> None:
    sample = random_sample(np.random.default_rng(0))
    lowest = int(sample.values[0].argmin())
    sample.importance[0, lowest] = 0.0
    high = DesignMatrix(LAWS["power"], sample).bounds({})[1][0, -1]
    assert high == np.delete(sample.values[0], lowest).min()


@given(seed=st.integers(0, 10**6), alpha=st.floats(0.05, 2.0))
@settings(max_examples=20, deadline=None)
def test_projection_is_bounded_linear_least_squares(seed: int, alpha: float) -> None:
    sample = random_sample(np.random.default_rng(seed))
    design = DesignMatrix(LAWS["joint"], sample)
    low, high = design.bounds({})
    problem = Problem(values=sample.values, importance=sample.importance, lower=low, upper=high)
    start = np.zeros((1, design.width))
    start[0, 0] = alpha
    found, cost = project(design, OBJECTIVES["ols"], problem, start, steps=2, cold=True)
    root = np.sqrt(sample.importance[0])
    columns = design.linear_columns(found)[0] * root[:, None]
    goal = sample.values[0] * root
    theirs = lsq_linear(columns, goal, (low[0, 1:], high[0, 1:]), method="bvls", tol=1e-14)
    assert found[0, 0] == alpha
    np.testing.assert_allclose(found[0, 1:], theirs.x, rtol=1e-8, atol=1e-10)
    assert cost[0] == pytest.approx(theirs.cost, rel=1e-10)


@pytest.mark.parametrize("name", ["log-ols", "huber"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_projection_never_raises_the_cost(name: str, seed: int) -> None:
    rng, objective = np.random.default_rng(seed), OBJECTIVES[name]
    sample = random_sample(rng)
    design = DesignMatrix(LAWS["joint"], sample)
    low, high = design.bounds({})
    problem = Problem(values=sample.values, importance=sample.importance, lower=low, upper=high)
    start = np.clip(rng.uniform(0.1, 2.0, (1, design.width)), low, high)
    before = objective.cost(objective.residual(sample.values, design.predict(start)), sample.importance)
    _, after = project(design, objective, problem, start, steps=1, cold=False)
    assert after[0] <= before[0]


@pytest.mark.parametrize("law", ["joint", "capacity"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_no_small_step_from_a_minimum_is_lower(law: str, name: str) -> None:
    rng, objective = np.random.default_rng(3), OBJECTIVES[name]
    sample = random_sample(rng)
    design = DesignMatrix(LAWS[law], sample)
    best = find_minima(design, objective)[0]
    low, high = (bounds[0] for bounds in design.bounds(best.region))
    steps = (
        rng.standard_normal((400, design.width)) * np.abs(best.vector) * 10.0 ** rng.uniform(-7, -1, (400, 1))
    )
    near = np.clip(best.vector + steps, low, high)
    costs = objective.value(objective.residual(sample.values, design.predict(near)), sample.importance)
    least = objective.value(
        objective.residual(sample.values, design.predict(best.vector[None])), sample.importance
    )
    assert best.converged
    assert (costs >= least * (1 - 1e-12)).all()


@pytest.mark.parametrize("name", ["log-ols", "ols"])
def test_refits_together_are_refits_one_by_one(name: str) -> None:
    rng, objective = np.random.default_rng(5), OBJECTIVES[name]
    truth = 1.0 + (np.tile(np.geomspace(1e6, 1e9, 5), 3) / 3e7) ** -0.4
    sample = random_sample(rng, copies=6)
    noisy = truth * np.exp(0.01 * rng.standard_normal((6, 15)))
    sample.values[:] = noisy
    design = DesignMatrix(LAWS["joint"], sample)
    minima = find_minima(design, objective)
    together = refit(design, objective, minima).vectors
    for row in range(6):
        alone = Sample(
            task="en-de", x=sample.x, weight=sample.weight,
            values=sample.values[[row]], importance=sample.importance[[row]],
        )  # fmt: skip
        found = find_minima(DesignMatrix(LAWS["joint"], alone), objective)[0].vector
        np.testing.assert_allclose(together[row], found, rtol=1e-6)


def test_unidentified_columns_are_those_of_the_null_space() -> None:
    rng = np.random.default_rng(0)
    jacobian = rng.standard_normal((10, 5)) * np.array([1.0, 1e6, 1e-6, 1.0, 1.0])
    assert not find_unidentified(jacobian).any()
    jacobian[:, 3] = 1e3 * jacobian[:, 1]  # two that move together
    jacobian[:, 4] = 0.0  # one that moves nothing
    assert find_unidentified(jacobian).tolist() == [False, True, False, True, True]


def test_models_are_counted_by_all_their_sizes() -> None:
    size = np.array([1e6, 1e6, 2e6, 2e6])
    parts = {"encoder_size": np.array([4e5, 6e5, 1e6, 1e6]), "decoder_size": np.array([6e5, 4e5, 1e6, 1e6])}
    weight = np.array([0.5, 0.5, 0.5, 1.0])
    sample = Sample(task="en-de", x=parts, weight=weight, values=np.ones((1, 4)), importance=np.ones((1, 4)))
    assert sample.num_sizes() == 3
    assert sample.num_sizes(1.0) == 1
    whole = Sample(
        task="en-de", x={"size": size}, weight=weight, values=np.ones((1, 4)), importance=np.ones((1, 4))
    )
    assert whole.num_sizes() == 2
