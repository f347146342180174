"""Minima of our search against those of 200-start L-BFGS-B, on 200 random tables.

Claim: no lower minimum is found than ours. Peer: `scipy.optimize.minimize(method="L-BFGS-B")` on all
parameters at once with the same derivatives and bounds, from random starts. Cited in
docs/laws/mathematics.md.

Tables alternate between noise that obeys no law (values uniform in [0.5, 5]) and laws with 10% noise; they
cycle through the laws and objectives.

    python -m benchmarks.laws.minima --out benchmarks/results/laws/minima.json
"""

from __future__ import annotations

import itertools
import json
import time

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.measurement import Figures, Out, provenance, run, write_report
from mnmt_laws.laws import LAWS
from mnmt_laws.solver import OBJECTIVES, DesignMatrix, Objective, Sample, find_minima

Array = NDArray[np.float64]
SEARCHED = ("joint", "limit-varies", "exponent-varies", "capacity", "linear-capacity", "simplex-capacity",
            "bivariate", "zhang", "chinchilla", "gordon", "length-full", "share-coupled", "transfer-capacity",
            "ye", "shukor")  # fmt: skip


def main(*, tables: int = 200, starts: int = 200, out: Out = None) -> None:
    """Fit every table both ways, and count which minimum is lower.

    Args:
        tables: Number of tables.
        starts: Random starts of the peer.
        out: JSON file for the figures.
    """
    cases = list(itertools.islice(itertools.cycle(itertools.product(SEARCHED, OBJECTIVES)), tables))
    rows = []
    for number, (law, objective) in enumerate(cases):
        rows.append(compare(law, OBJECTIVES[objective], number, starts))
        print(json.dumps(rows[-1]), flush=True)
    excess = np.array([row["relative_excess_of_ours"] for row in rows])
    summary: Figures = {
        "tables": len(rows),
        "starts": starts,
        "ours_higher_by_more_than_1e-9": int(np.sum(excess > 1e-9)),
        "ours_lower_by_more_than_1e-9": int(np.sum(excess < -1e-9)),
        "largest_relative_excess_of_ours": float(excess.max()),
        "our_seconds": round(float(sum(row["our_seconds"] for row in rows)), 1),
        "peer_seconds": round(float(sum(row["peer_seconds"] for row in rows)), 1),
    }
    print(json.dumps(summary, indent=1))
    write_report(
        out, "minima of two searches", {**summary, "cases": rows}, provenance("mnmt-laws", "numpy", "scipy")
    )


def compare(law: str, objective: Objective, number: int, starts: int) -> Figures:
    """Return both minima of one random table."""
    rng = np.random.default_rng(number)
    design = DesignMatrix(LAWS[law], table(rng, lawful=(number // 4) % 2 == 0))
    start = time.perf_counter()
    best = find_minima(design, objective)[0]
    ours = value(design, objective, best.vector)
    middle = time.perf_counter()
    theirs = min(lbfgs(design, objective, rng) for _ in range(starts))
    return {
        "law": law,
        "objective": objective.name,
        "ours": ours,
        "lbfgs": theirs,
        "relative_excess_of_ours": ours / theirs - 1,
        "converged": best.converged,
        "our_seconds": middle - start,
        "peer_seconds": time.perf_counter() - middle,
    }


def table(rng: np.random.Generator, *, lawful: bool) -> Sample:
    """Return a random table of six sizes by four weights."""
    size, weight = (axis.ravel() for axis in np.meshgrid(np.geomspace(1e6, 1e9, 6), [0.1, 0.4, 0.7, 1.0]))
    tokens = np.exp(rng.uniform(np.log(1e8), np.log(1e10), len(size)))
    values = rng.uniform(0.5, 5.0, len(size))
    if lawful:
        share = weight + rng.uniform(0, 0.5) * weight**0.5 * (1 - weight)
        alpha = rng.uniform(0.1, 0.8)
        law = (share * size / 1e7) ** -alpha + rng.uniform(0.2, 2) + (tokens / 1e8) ** -0.4
        values = law * np.exp(0.1 * rng.standard_normal(len(size)))
    encoder = rng.uniform(0.3, 0.6, len(size))
    first = rng.uniform(0, 1, len(size))
    partners = np.column_stack([first, 1 - first]) * (1 - weight)[:, None]
    return Sample(
        task="en-de",
        x={"size": size, "weight": weight, "tokens": tokens, "unique_tokens": tokens / 2,
           "flops": 6 * size * tokens, "encoder_size": encoder * size,
           "decoder_size": (1 - encoder) * size * rng.uniform(0.5, 2, len(size)), "partners": partners},
        weight=weight, values=values[None], importance=np.ones((1, len(size))), partners=("en-fr", "en-zh"),
    )  # fmt: skip


def value(design: DesignMatrix, objective: Objective, vector: Array) -> float:
    """Return the objective at one parameter vector."""
    residual = objective.residual(design.sample.values, design.predict(vector[None]))
    return float(objective.value(residual, design.sample.importance)[0])


def lbfgs(design: DesignMatrix, objective: Objective, rng: np.random.Generator) -> float:
    """Return where L-BFGS-B ends from one random start in one of the law's regions."""
    region = design.law.regions[rng.integers(len(design.law.regions))]
    low, high = (bounds[0] for bounds in design.bounds(region))
    free = np.isinf(high)
    start = rng.uniform(low, np.where(free, 1.0, high))
    for column in np.flatnonzero(free):  # factors of the size that brings predictions near the data
        unit = np.abs(design.jacobian(np.where(free, 1.0, start)[None])[1][0, column])
        start[column] = rng.uniform(0.0, 1.5) * np.median(design.sample.values) / np.median(unit[unit > 0])

    def cost(vector: Array) -> tuple[float, Array]:
        predicted, jacobian = design.jacobian(vector[None])
        residual = objective.residual(design.sample.values, predicted)
        pull = np.sign(residual) if objective.absolute else objective.reweighting(residual) * residual
        slope = jacobian[0] @ (pull * objective.slope(predicted))[0]
        return float(objective.value(residual, design.sample.importance)[0]), slope

    bounds = list(zip(low, high, strict=True))
    result = minimize(
        cost, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-14}
    )
    return float(result.fun) if np.isfinite(result.fun) else np.inf


if __name__ == "__main__":
    run(main, smoke={"tables": 2, "starts": 2})
