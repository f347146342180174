"""Our minima against many starts of scipy's L-BFGS-B, with the laws written out again in other parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mnmt_laws.arrays import Array
from mnmt_laws.laws import LAWS
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import OBJECTIVES
from mnmt_laws.solver.sample import Sample
from mnmt_laws.solver.search import find_minima, refit

MakeSample = Callable[..., Sample]

Complex = NDArray[np.complex128]
Formula = Callable[[Complex, dict[str, Array]], Complex]
STARTS = 12
SLACK = 1e-9


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A law in parameters that L-BFGS-B likes: logarithms of factors, sizes over 3e7, tokens over 2e9."""

    formula: Formula
    """(m, P) parameters, complex to differentiate, to (m, n) predictions."""

    boxes: tuple[tuple[tuple[float, float], ...], ...]
    """Regions to search, each with bounds of all parameters; (0, inf) stands for the limit's [0, min L]."""

    starts: tuple[float, float] = (-2.0, 2.0)
    """Where starts of unbounded parameters are drawn."""


ALPHA, LOG, LIMIT = (0.01, 4.0), (-60.0, 60.0), (0.0, np.inf)


def by_weight(theta: Complex, first: int, x: dict[str, Array]) -> Complex:
    """A parameter with a value for each of the three weights."""
    return theta[:, first + x["group"].astype(int)]


def joint(theta: Complex, x: dict[str, Array]) -> Complex:
    return np.asarray(np.exp(by_weight(theta, 2, x) - theta[:, :1] * x["log_size"]) + theta[:, 1:2])


def limit_varies(theta: Complex, x: dict[str, Array]) -> Complex:
    return np.asarray(np.exp(theta[:, 1:2] - theta[:, :1] * x["log_size"]) + by_weight(theta, 2, x))


def exponent_varies(theta: Complex, x: dict[str, Array]) -> Complex:
    # One β for N in parameters: the exponents' lines meet at N = 1.
    return np.asarray(
        np.exp(theta[:, :1] - by_weight(theta, 2, x) * (x["log_size"] + np.log(3e7))) + theta[:, 1:2]
    )


def capacity(theta: Complex, x: dict[str, Array]) -> Complex:
    alpha, limit, log_beta, c1, c2, c3 = (theta[:, [column]] for column in range(6))
    rest = np.where(x["weight"] < 1, 1 - x["weight"], 0.5)
    hump = np.exp(c2 * np.log(x["weight"]) + c3 * np.log(rest)) * (x["weight"] < 1)
    predicted = np.exp(log_beta - alpha * (np.log(x["weight"] + c1 * hump) + x["log_size"])) + limit
    return np.asarray(predicted)


def chinchilla(theta: Complex, x: dict[str, Array]) -> Complex:
    alpha, beta, log_a, log_b, limit = (theta[:, [column]] for column in range(5))
    return np.exp(log_a - alpha * x["log_size"]) + np.exp(log_b - beta * x["log_tokens"]) + limit


def gordon(theta: Complex, x: dict[str, Array]) -> Complex:
    alpha_n, alpha_d, log_n, log_d = (theta[:, [column]] for column in range(4))
    by_size = np.exp(np.clip(alpha_n / alpha_d * (log_n - x["log_size"]), -300, 300))
    return np.asarray(np.exp(alpha_d * np.log(by_size + np.exp(log_d - x["log_tokens"]))))


PEERS = {
    "joint": Peer(formula=joint, boxes=((ALPHA, LIMIT, LOG, LOG, LOG),)),
    "limit-varies": Peer(formula=limit_varies, boxes=((ALPHA, LOG, LIMIT, LIMIT, LIMIT),)),
    "exponent-varies": Peer(
        formula=exponent_varies, boxes=(((-60.0, 90.0), LIMIT, ALPHA, ALPHA, ALPHA),), starts=(0.0, 20.0)
    ),
    "capacity": Peer(
        formula=capacity,
        boxes=(
            (ALPHA, LIMIT, LOG, (0.0, 10.0), (0.01, 6.0), (0.01, 6.0)),
            (ALPHA, LIMIT, LOG, (-0.99, 0.0), (1.0, 6.0), (0.01, 6.0)),
        ),
    ),
    "chinchilla": Peer(formula=chinchilla, boxes=((ALPHA, ALPHA, LOG, LOG, LIMIT),)),
    "gordon": Peer(formula=gordon, boxes=((ALPHA, ALPHA, LOG, LOG),)),
}


def table_sample(rng: np.random.Generator, *, lawful: bool) -> Sample:
    """Six sizes by three weights: values that obey no law, or a law with noise."""
    size, weight = (axis.ravel() for axis in np.meshgrid(np.geomspace(1e6, 1e9, 6), [0.1, 0.4, 1.0]))
    tokens = np.exp(rng.uniform(np.log(1e8), np.log(4e10), len(size)))
    values = rng.uniform(0.5, 5.0, len(size))
    if lawful:
        share = weight + rng.uniform(0, 0.5) * weight**0.5 * (1 - weight)
        law = (share * size / 3e7) ** -rng.uniform(0.1, 0.8) + rng.uniform(0.2, 2) + (tokens / 1e9) ** -0.4
        values = law * np.exp(rng.choice([0.003, 0.1]) * rng.standard_normal(len(size)))
    return Sample(
        task="en-de", x={"size": size, "weight": weight, "tokens": tokens}, weight=weight,
        values=values[None], importance=np.ones((1, len(size))),
    )  # fmt: skip


def objective_at(name: str, predicted: Array, observed: Array) -> tuple[float, Array]:
    """The objective and its derivative in each prediction."""
    if name == "ols":
        return 0.5 * float(np.sum((predicted - observed) ** 2)), predicted - observed
    residual = np.log(predicted / observed)
    return 0.5 * float(np.sum(residual**2)), residual / predicted


def least(law: str, sample: Sample, objective: str, rng: np.random.Generator) -> float:
    """The least objective from random starts."""
    peer, observed = PEERS[law], sample.values[0]
    x = {
        "log_size": np.log(sample.x["size"] / 3e7), "log_tokens": np.log(sample.x["tokens"] / 2e9),
        "weight": sample.weight, "group": np.searchsorted(sample.weights, sample.weight).astype(float),
    }  # fmt: skip
    best = np.inf
    for start in range(STARTS):
        bounds = limited(peer.boxes[start % len(peer.boxes)], sample)
        place = np.array(
            [rng.uniform(max(low, peer.starts[0]), min(high, peer.starts[1])) for low, high in bounds]
        )
        found = minimize(
            _cost, place, args=(peer.formula, x, observed, objective), jac=True, bounds=bounds,
            method="L-BFGS-B", options={"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-10},
        )  # fmt: skip
        best = min(best, float(found.fun))
    return best


def limited(box: tuple[tuple[float, float], ...], sample: Sample) -> list[tuple[float, float]]:
    """The box with [0, min L] for limits; a limit for each weight has the least value there."""
    lowest = [float(sample.values[0, sample.weight == weight].min()) for weight in sample.weights]
    tops = iter(lowest if box.count(LIMIT) > 1 else [min(lowest)])
    return [(0.0, next(tops)) if bounds == LIMIT else bounds for bounds in box]


def _cost(
    place: Array, formula: Formula, x: dict[str, Array], observed: Array, name: str
) -> tuple[float, Array]:
    """Objective and gradient, by complex steps."""
    table = place + 1e-30j * np.vstack([np.zeros(len(place)), np.eye(len(place))])
    predicted = formula(table, x)
    value, slope = objective_at(name, predicted[0].real, observed)
    return value, predicted[1:].imag / 1e-30 @ slope


def ours(law: str, sample: Sample, objective: str) -> tuple[float, bool]:
    design = DesignMatrix(LAWS[law], sample)
    best = find_minima(design, OBJECTIVES[objective])[0]
    return objective_at(objective, design.predict(best.vector), sample.values[0])[0], best.converged


CASES = [("log-ols", False), ("log-ols", True), ("ols", False), ("ols", True)]
FAST = {("joint", "log-ols", False), ("capacity", "log-ols", True), ("chinchilla", "ols", True)}


@pytest.mark.parametrize(
    ("law", "objective", "lawful"),
    [pytest.param(law, *case, marks=() if (law, *case) in FAST else pytest.mark.slow)
     for law in PEERS for case in CASES],
)  # fmt: skip
def test_no_start_of_a_general_optimiser_ends_lower(law: str, objective: str, lawful: bool) -> None:
    rng = np.random.default_rng([len(law), len(objective), lawful])
    sample = table_sample(rng, lawful=lawful)
    found, converged = ours(law, sample, objective)
    assert converged
    assert found <= least(law, sample, objective, rng) * (1 + SLACK)


@pytest.mark.parametrize("law", ["joint", "capacity"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_no_small_step_from_a_minimum_is_lower(law: str, name: str, random_sample: MakeSample) -> None:
    rng, objective = np.random.default_rng(3), OBJECTIVES[name]
    sample = random_sample(rng)
    design = DesignMatrix(LAWS[law], sample)
    best = find_minima(design, objective)[0]
    low, high = (bounds[0] for bounds in design.bounds(best.region))
    steps = (
        rng.standard_normal((400, design.width)) * np.abs(best.vector) * 10.0 ** rng.uniform(-7, -1, (400, 1))
    )
    near = np.clip(best.vector + steps, low, high)
    costs = objective.cost(objective.residual(sample.values, design.predict(near)), sample.importance)
    least = objective.cost(
        objective.residual(sample.values, design.predict(best.vector[None])), sample.importance
    )
    assert best.converged
    assert (costs >= least * (1 - 1e-12)).all()


@pytest.mark.parametrize("name", ["log-ols", "ols"])
def test_refits_together_are_refits_one_by_one(name: str, random_sample: MakeSample) -> None:
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


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("law", ["joint", "capacity"])
def test_a_search_that_is_cut_short_is_no_minimum(law: str, name: str, random_sample: MakeSample) -> None:
    rng, objective = np.random.default_rng(7), OBJECTIVES[name]
    sample = random_sample(rng, copies=5)
    truth = 1.0 + (sample.x["size"] * sample.weight / 3e7) ** -0.3
    sample.values[:] = truth * np.exp(0.02 * rng.standard_normal(sample.values.shape))
    design = DesignMatrix(LAWS[law], sample)
    assert not find_minima(design, objective, max_steps=0)[0].converged
    minima = find_minima(design, objective)
    assert minima[0].converged
    assert not refit(design, objective, minima, max_steps=0).converged[1:].any()
    assert refit(design, objective, minima).converged.all()


def test_many_rows_end_where_all_of_them_say_whatever_their_order() -> None:
    rng, count = np.random.default_rng(2), 12_000
    size, weight = np.exp(rng.uniform(14, 20, count)), rng.choice([0.1, 0.4, 1.0], count)
    values = (1.0 + (weight * size / 1e7) ** -0.4) * np.exp(0.02 * rng.standard_normal(count))
    ends = []
    for order in (np.arange(count), rng.permutation(count)):
        sample = Sample(
            task="a", x={"size": size[order], "weight": weight[order]}, weight=weight[order],
            values=values[None, order], importance=np.ones((1, count)),
        )  # fmt: skip
        ends.append(find_minima(DesignMatrix(LAWS["joint"], sample), OBJECTIVES["log-ols"])[0])
    assert all(end.converged for end in ends)
    np.testing.assert_allclose(ends[0].vector, ends[1].vector, rtol=1e-7)
    np.testing.assert_allclose(ends[0].vector[0], 0.4, atol=0.02)
