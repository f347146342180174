"""A thousand perturbation refits of a table of the paper's shape: seconds, and minima.

Claim: batched refits take seconds and reach minima as low. Peers: `scipy.optimize.least_squares` (trust
region, analytic derivatives, bounds, log residuals) on every noisy copy, from several random starts, as
analysts' notebooks do, keeping the best; and from one start, the estimate that our refits set out from, too.
No page cites it yet.

The table has two tasks, eight sizes, eight weights a task, and 1% noise. The estimate is known to both; our
seconds are those of the refits. All are seconds of the processor, so that other work on the machine counts
little. Objectives are compared copy by copy with the multi-start. Then the seconds of the capacity law and of
the simplex law on seven tasks in 200 runs, the search and 200 refits each.

    python -m benchmarks.laws.refits --out benchmarks/results/laws/refits.json
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from benchmarks.laws.coverage import LAWS, SIZES, WEIGHTS
from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from mnmt_laws import LawFit, Observations, Perturbation, ResidualBootstrap, fit, observe, simulate
from mnmt_laws.laws import LawName

Array = NDArray[np.float64]
Model = Callable[[Array], tuple[Array, Array]]
"""Log-predictions (n,) and their derivatives (n, P) at a parameter vector."""

FITTED: tuple[LawName, ...] = ("joint", "capacity")
SEVEN: tuple[LawName, ...] = ("capacity", "simplex-capacity")
LOW_ALPHA, HIGH_ALPHA = 0.01, 4.0


def main(
    *, refits: int = 1000, starts: int = 8, peer_refits: int | None = None, runs: int = 200, out: Out = None
) -> None:
    """Time both, compare their minima, and print a table.

    Args:
        refits: Refits of each law.
        starts: Random starts of the peer for each refit.
        peer_refits: How many of the refits the peer does; all by default.
        runs: Runs of the seven tasks.
        out: JSON file for the figures.
    """
    table = simulate(LAWS, sizes=SIZES, weights=(*WEIGHTS, 0.0), noise=0.01, seed=1)
    observations = observe(table)
    count = min(peer_refits or refits, refits)
    rows = [measure(observations, law, refits=refits, starts=starts, count=count) for law in FITTED]
    print_table(rows)
    many = seven_tasks(runs=runs)
    seven = [time_seven(many, law, refits=min(refits, 200)) for law in SEVEN]
    print_table(seven)
    what = "perturbation refits of 2 tasks x 8 sizes x 8 weights, log-ols; fits of 7 tasks"
    figures = {"results": rows, "seven_tasks": seven}
    write_report(out, what, figures, provenance("mnmt-laws", "numpy", "scipy"))


def measure(observations: Observations, law: LawName, *, refits: int, starts: int, count: int) -> Figures:
    """Return the seconds of all three for one law, and how the objectives of ours and the best differ."""
    method = Perturbation(refits=refits)
    fit(observations, law=law, uncertainty=Perturbation(refits=2), irreducible="ignore")
    start = time.process_time()
    fitted = fit(observations, law=law, uncertainty=method, irreducible="ignore")
    ours = time.process_time() - start
    cold, warm, excess = 0.0, 0.0, []
    for number, task in enumerate(fitted.tasks):
        rows = observations.fit[observations.fit["task"] == task]
        noise = np.random.default_rng([method.seed, number]).standard_normal((refits, len(rows)))
        copies = rows["value"].to_numpy() * (1.0 + method.share * noise)
        predicted = fitted.predict(draws=True, size=rows["size"], task=task, weight=rows["weight"])
        columns = rows["size"].to_numpy(), rows["weight"].to_numpy()
        start = time.process_time()
        best = peer(law, *columns, copies[:count], starts)
        middle = time.process_time()
        peer(law, *columns, copies[:count], 1, estimate=estimate_of(fitted, law, task, columns[0]))
        cold, warm = cold + middle - start, warm + time.process_time() - middle
        objective = 0.5 * np.sum((np.log(predicted) - np.log(copies)) ** 2, axis=1)[:count]
        excess.append(objective / best - 1)
    differences, scale = np.concatenate(excess), refits / count
    return {
        "law": law,
        "refits": refits,
        "mnmt_laws_seconds": round(ours, 3),
        "scipy_seconds": round(cold * scale, 1),
        "scipy_warm_seconds": round(warm * scale, 1),
        "scipy_refits_measured": count,
        "scipy_starts": starts,
        "times_faster_than_multi_start": round(cold * scale / ours, 1),
        "times_faster_than_warm_start": round(warm * scale / ours, 1),
        "our_objective_above_scipys_by_more_than_1e-6": int(np.sum(differences > 1e-6)),
        "our_objective_below_scipys_by_more_than_1e-6": int(np.sum(differences < -1e-6)),
        "largest_relative_excess_of_ours": float(differences.max()),
    }


def estimate_of(fitted: LawFit, law: str, task: str, size: Array) -> Array:
    """Return the estimate as the peer's θ, for sizes over their geometric mean."""
    one = fitted.parameters.sel(task=task)
    pivot = float(np.exp(np.log(size).mean()))
    shapes = ("c1", "c2", "c3") if law == "capacity" else ()
    beta = np.atleast_1d(one.beta.dropna("weight").values if one.beta.dims else one.beta.values)
    head = [float(one[name]) for name in ("alpha", "l_inf", *shapes)]
    return np.array([*head, *(beta * pivot ** -float(one.alpha))])


def seven_tasks(*, runs: int) -> Observations:
    """Return runs of random mixtures of seven tasks, whose losses obey the simplex law with 1% noise."""
    rng = np.random.default_rng(0)
    tasks = [f"en-{code}" for code in ("cs", "de", "fi", "fr", "ja", "ru", "zh")]
    counts = np.stack([np.maximum(rng.multinomial(1000, p), 1) for p in rng.dirichlet(np.ones(7), runs)])
    counts[np.arange(runs), counts.argmax(axis=1)] += 1000 - counts.sum(axis=1)
    sizes, rows = rng.choice(np.geomspace(2e7, 1e9, 8), runs), []
    for order, (size, weights) in enumerate(zip(sizes, counts / 1000, strict=True)):
        mixture = ",".join(f"{task}:{weight:.3f}" for task, weight in zip(tasks, weights, strict=True))
        for number, task in enumerate(tasks):
            near, far = weights[(number + 1) % 7], weights[(number + 2) % 7]
            share = weights[number] + 0.2 * weights[number] ** 0.5 * (near + 0.5 * far)
            value = (1000 * (share * size) ** -0.4 + 0.9) * np.exp(0.01 * rng.standard_normal())
            rows.append({"run": f"run {order}", "size": size, "task": task, "mixture": mixture,
                         "weight": round(weights[number], 3), "metric": "loss", "value": value})  # fmt: skip
    return observe(pd.DataFrame(rows))


def time_seven(observations: Observations, law: LawName, *, refits: int) -> Figures:
    """Return the seconds of a fit to seven tasks."""
    start = time.process_time()
    fitted = fit(observations, law=law, uncertainty=ResidualBootstrap(refits=refits))
    seconds = time.process_time() - start
    return {"law": law, "tasks": 7, "refits": refits, "seconds": round(seconds, 2), "scatter": fitted.scatter}


def peer(
    law: str, size: Array, weight: Array, copies: Array, starts: int, *, estimate: Array | None = None
) -> Array:
    """Return the least half sums of squares that scipy finds from random starts, or from an estimate."""
    rng = np.random.default_rng(0)
    scaled = size / np.exp(np.log(size).mean())
    model = joint(scaled, weight) if law == "joint" else capacity(scaled, weight)
    factors = len(np.unique(weight)) if law == "joint" else 1
    best = []
    for values in copies:
        low, high, draw = space(law, factors, float(values.min()), rng)
        logs = np.log(values)
        points = [draw() for _ in range(starts)] if estimate is None else [inside(estimate, low, high)]
        best.append(min(descend(model, logs, point, (low, high)) for point in points))
    return np.array(best)


def inside(point: Array, low: Array, high: Array) -> Array:
    """Return a point strictly within its bounds, as scipy wants it."""
    reach = 1e-6 * np.where(np.isfinite(high), high - low, 1.0)
    return np.clip(point, low + reach, high - reach)


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
    run(main, smoke={"refits": 3, "starts": 1, "runs": 30})
