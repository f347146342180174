"""Recovery of every law from tables simulated from it without noise.

Claim: whatever the law, its own parameters come back. No peer: the truth is known. Cited in
docs/laws/mathematics.md.

    python -m benchmarks.laws.recovery --out benchmarks/results/laws/recovery.json
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.measurement import Names, Out, print_table, provenance, run, write_report
from mnmt_laws import KnownLaw, LawFit, ResidualBootstrap, example_law, fit, simulate
from mnmt_laws.laws import LAWS, Law, LawName
from mnmt_laws.laws.power import Zhang

TASKS = ("en-de", "en-fr", "en-zh")
SIZES, LENGTHS = np.geomspace(1e6, 1e9, 5), np.geomspace(2e8, 2e10, 4)
UNIQUE, ENCODER_SHARES = (5e7, 3e8, 2e9), (0.3, 0.5)
WEIGHTS = (0.1, 0.3, 0.5, 0.8, 1.0)
MIXTURES = (
    (1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.5, 0.0, 0.5), (0.2, 0.8, 0.0), (0.25, 0.0, 0.75), (0.1, 0.45, 0.45),
    (0.3, 0.1, 0.6), (0.6, 0.3, 0.1), (0.8, 0.1, 0.1), (0.05, 0.7, 0.25), (0.4, 0.35, 0.25),
)  # fmt: skip
UNTRAINED = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.5, 0.5), (0.0, 0.2, 0.8))


def main(*, laws: Names = tuple(LAWS), seeds: int = 3, out: Out = None) -> None:
    """Print a row for each law: the largest errors over the seeds.

    Args:
        laws: Names of the laws.
        seeds: Draws of parameters a law.
        out: JSON file for the figures.
    """
    rows = []
    for law in laws:
        start = time.perf_counter()
        errors = np.array([recover(law, seed) for seed in range(seeds)])  # type: ignore[arg-type]
        prediction, parameter = errors.max(axis=0)
        seconds = (time.perf_counter() - start) / seeds
        rows.append(
            {
                "law": law,
                "predictions": float(prediction),
                "parameters": float(parameter),
                "seconds": round(seconds, 2),
            }
        )
        print(rows[-1], flush=True)
    print_table([{**row, "predictions": f"{row['predictions']:.0e}", "parameters": f"{row['parameters']:.0e}"}
                 for row in rows])  # fmt: skip
    write_report(out, "recovery without noise", {"laws": rows}, provenance("mnmt-laws", "numpy", "scipy"))


def recover(law: LawName, seed: int) -> tuple[float, float]:
    """Return the largest relative errors of predictions and of parameters of one simulated table."""
    truth = example_law(law, partners=TASKS[1:], weights=WEIGHTS, seed=seed)
    table = table_of(truth)
    fitted = fit(table, law=anchored(truth), uncertainty=ResidualBootstrap(refits=0), irreducible="ignore")
    return error_of_predictions(fitted), error_of_parameters(fitted, truth)


def table_of(
    truth: KnownLaw,
    *,
    noise: float = 0.0,
    seed: int = 0,
    seeds: int = 1,
    sizes: Sequence[float] = tuple(SIZES),
    lengths: Sequence[float] = tuple(LENGTHS),
) -> pd.DataFrame:
    """Return the table of one task over all that its law reads."""
    law = truth.definition
    keyed = any(parameter.varies == "weight" for parameter in law.parameters)
    mixtures = [{"en-de": w, "en-fr": round(1 - w, 12)} for w in WEIGHTS] if keyed else [
        dict(zip(TASKS, weights, strict=True))
        for weights in (*MIXTURES, *(UNTRAINED if law.zero_shot else ()))
    ]  # fmt: skip
    reads = set(law.predictors)
    return simulate(
        {"en-de": truth},
        sizes=sizes if reads & {"size", "flops", "encoder_size"} else sizes[:1],
        lengths=lengths if "tokens" in reads else lengths[:1] if "flops" in reads else (),
        unique_tokens=UNIQUE if "unique_tokens" in reads else (),
        encoder_shares=ENCODER_SHARES if "encoder_size" in reads else (),
        mixtures=mixtures if reads & {"weight", "partners"} else [{"en-de": 1.0}],
        noise=noise,
        seed=seed,
        seeds=seeds,
    )


def anchored(truth: KnownLaw) -> Law:
    """Return the law, with the N_0 of its parameters."""
    law = truth.definition
    if isinstance(law, Zhang):
        return replace(law, n_0=truth.parameters["n_0"])  # type: ignore[arg-type]
    return law


def error_of_predictions(fitted: LawFit) -> float:
    """Return the largest relative error over the table."""
    observed, predicted = fitted.fitted_values
    return float(np.abs(predicted / observed - 1).max())


def error_of_parameters(fitted: LawFit, truth: KnownLaw) -> float:
    """Return the largest relative error of a parameter."""
    errors = []
    for name, value in truth.parameters.items():
        estimate = fitted.parameters[name].sel(task="en-de")
        for key, expected in value.items() if isinstance(value, Mapping) else ((None, value),):
            along = "partner" if "partner" in estimate.dims else "weight"
            one = estimate if key is None else estimate.sel({along: key})
            errors.append(abs(float(one) / expected - 1))
    return max(errors)


if __name__ == "__main__":
    run(main, smoke={"laws": ("share-tied", "ye"), "seeds": 1})
