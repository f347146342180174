"""A thousand perturbation refits of a table of the paper's shape: seconds, and minima.

Claim: batched refits take seconds and reach minima as low. Peer: scipy's multi-start, which fits every noisy
copy by `scipy.optimize.least_squares` (trust region, analytic derivatives, bounds, log residuals) from
several random starts, as analysts' notebooks do, and keeps the best. No page cites it yet.

The table has two tasks, eight sizes, eight weights a task, and 1% noise. The objectives of both are compared
copy by copy.

    python -m benchmarks.laws.refits --out benchmarks/results/laws/refits.json
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from benchmarks.laws.coverage import LAWS, SIZES, WEIGHTS
from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from mnmt_laws import Observations, Perturbation, fit, observe, simulate
from mnmt_laws.laws import LawName

Array = NDArray[np.float64]
Model = Callable[[Array], tuple[Array, Array]]
"""Log-predictions (n,) and their derivatives (n, P) at a parameter vector."""

FITTED: tuple[LawName, ...] = ("joint", "capacity")
LOW_ALPHA, HIGH_ALPHA = 0.01, 4.0


def main(*, refits: int = 1000, starts: int = 8, peer_refits: int | None = None, out: Out = None) -> None:
    """Time both, compare their minima, and print a table.

    Args:
        refits: Refits of each law.
        starts: Random starts of the peer for each refit.
        peer_refits: How many of the refits the peer does; all by default.
        out: JSON file for the figures.
    """
    table = simulate(LAWS, sizes=SIZES, weights=(*WEIGHTS, 0.0), noise=0.01, seed=1)
    observations = observe(table)
    count = min(peer_refits or refits, refits)
    rows = [measure(observations, law, refits=refits, starts=starts, count=count) for law in FITTED]
    print_table(rows)
    what = "perturbation refits of 2 tasks x 8 sizes x 8 weights, log-ols"
    write_report(out, what, {"results": rows}, provenance("mnmt-laws", "numpy", "scipy"))


def measure(observations: Observations, law: LawName, *, refits: int, starts: int, count: int) -> Figures:
    """Return the seconds of both for one law, and how their objectives differ."""
    method = Perturbation(refits=refits)
    fit(observations, law=law, uncertainty=Perturbation(refits=2))
    start = time.perf_counter()
    fitted = fit(observations, law=law, uncertainty=method)
    ours = time.perf_counter() - start
    theirs, excess = 0.0, []
    for number, task in enumerate(fitted.tasks):
        rows = observations.fit[observations.fit["task"] == task]
        noise = np.random.default_rng([method.seed, number]).standard_normal((refits, len(rows)))
        copies = rows["value"].to_numpy() * (1.0 + method.share * noise)
        predicted = fitted.predict(draws=True, size=rows["size"], task=task, weight=rows["weight"])
        start = time.perf_counter()
        best = peer(law, rows["size"].to_numpy(), rows["weight"].to_numpy(), copies[:count], starts)
        theirs += time.perf_counter() - start
        objective = 0.5 * np.sum((np.log(predicted) - np.log(copies)) ** 2, axis=1)[:count]
        excess.append(objective / best - 1)
    differences = np.concatenate(excess)
    scaled = theirs * refits / count
    return {
        "law": law,
        "refits": refits,
        "mnmt_laws_seconds": round(ours, 3),
        "scipy_seconds": round(scaled, 1),
        "scipy_refits_measured": count,
        "scipy_starts": starts,
        "times_faster": round(scaled / ours, 1),
        "our_objective_above_scipys_by_more_than_1e-6": int(np.sum(differences > 1e-6)),
        "our_objective_below_scipys_by_more_than_1e-6": int(np.sum(differences < -1e-6)),
        "largest_relative_excess_of_ours": float(differences.max()),
    }


def peer(law: str, size: Array, weight: Array, copies: Array, starts: int) -> Array:
    """Return the least half sums of squares that scipy finds, (copies,)."""
    rng = np.random.default_rng(0)
    scaled = size / np.exp(np.log(size).mean())
    model = joint(scaled, weight) if law == "joint" else capacity(scaled, weight)
    factors = len(np.unique(weight)) if law == "joint" else 1
    best = []
    for values in copies:
        low, high, draw = space(law, factors, float(values.min()), rng)
        logs = np.log(values)
        best.append(min(descend(model, logs, draw(), (low, high)) for _ in range(starts)))
    return np.array(best)


def descend(model: Model, logs: Array, start: Array, bounds: tuple[Array, Array]) -> float:
    """Return the half sum of squares where scipy ends from one start."""

    def residuals(theta: Array) -> Array:
        return model(theta)[0] - logs

    def jacobian(theta: Array) -> Array:
        return model(theta)[1]

    result = least_squares(
        residuals,
        start,
        jac=jacobian,
        bounds=bounds,
        x_scale="jac",
        ftol=1e-12,
        xtol=1e-12,
        gtol=1e-12,
        max_nfev=500,
    )
    return float(result.cost)


def space(
    law: str, factors: int, least: float, rng: np.random.Generator
) -> tuple[Array, Array, Callable[[], Array]]:
    """Return bounds of the parameters, and a function that draws a start within them."""
    shapes = [(0.0, 10.0), (0.01, 6.0), (0.01, 6.0)] if law == "capacity" else []
    bounds = [(LOW_ALPHA, HIGH_ALPHA), (0.0, least), *shapes, *[(0.0, np.inf)] * factors]
    low, high = (np.array(side) for side in zip(*bounds, strict=True))

    def draw() -> Array:
        shape = [rng.uniform(0.02, 1), rng.uniform(0.2, 2), rng.uniform(0.2, 2)] if shapes else []
        return np.array([rng.uniform(0.05, 1.5), rng.uniform(0.05, 0.95) * least, *shape,
                         *np.exp(rng.uniform(-2, 1, factors))])  # fmt: skip

    return low, high, draw


def joint(size: Array, weight: Array) -> Model:
    """Return the joint law with θ = (α, L∞, β_1 … β_G)."""
    group = np.unique(weight, return_inverse=True)[1]
    member = np.eye(int(group.max()) + 1)[group]

    def evaluate(theta: Array) -> tuple[Array, Array]:
        power = size ** -theta[0]
        predicted = theta[2:][group] * power + theta[1]
        by_alpha = -np.log(size) * theta[2:][group] * power
        columns = np.column_stack([by_alpha, np.ones_like(size), member * power[:, None]])
        return np.log(predicted), columns / predicted[:, None]

    return evaluate


def capacity(size: Array, weight: Array) -> Model:
    """Return the capacity law with θ = (α, L∞, c1, c2, c3, β)."""
    rest = np.where(weight < 1, 1 - weight, 1.0)

    def evaluate(theta: Array) -> tuple[Array, Array]:
        alpha, limit, c1, c2, c3, beta = theta
        hump = weight**c2 * (1 - weight) ** c3
        share = weight + c1 * hump
        power = (share * size) ** -alpha
        predicted = beta * power + limit
        by_share = -alpha * beta * power / share
        columns = np.column_stack([
            -np.log(share * size) * beta * power, np.ones_like(size), by_share * hump,
            by_share * c1 * hump * np.log(weight), by_share * c1 * hump * np.log(rest), power,
        ])  # fmt: skip
        return np.log(predicted), columns / predicted[:, None]

    return evaluate


if __name__ == "__main__":
    run(main, smoke={"refits": 3, "starts": 1})
