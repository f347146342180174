"""Coverage and width of 95% prediction intervals of new models, for every law, on tables simulated from it.

Claim: about 95 of 100 new models lie in their prediction interval, within the sizes and lengths of a table
and at 2 and 4 times the largest. No peer: the truth is known. Cited in docs/laws/uncertainty.md.

Each simulated table also has models that the law is not fitted to: between two sizes (and lengths, for laws
of length), and at 2 and 4 times the largest. Laws without a size predict a second model of each kind.
`--bend` multiplies every loss by 1 + bend × (log size over the range)², which no law has, to show what the
back-test's part of an interval is good for. With `--known` the irreducible loss is known. Rows of a table are
alike, so the standard error is that of the tables' shares. Widths are medians, in percent of the prediction.

    python -m benchmarks.laws.prediction_coverage --out benchmarks/results/laws/prediction_coverage.json
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from mnmt_laws import KnownLaw, ResidualBootstrap, example_law, fit, predict_interval, simulate
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
PLACES = {"inside": 0.0, "2 times": 2.0, "4 times": 4.0}


def main(
    *,
    laws: Names = tuple(LAWS),
    tables: int = 60,
    noise: float = 0.01,
    bend: float = 0.0,
    known: bool = False,
    refits: int = 100,
    jobs: int = 1,
    out: Out = None,
) -> None:
    """Print the coverage of every law's prediction intervals.

    Args:
        laws: Names of the laws.
        tables: Simulated tables a law; each has parameters of its own.
        noise: Relative standard deviation of the losses.
        bend: Relative error of the law at the largest size, growing with the logarithm of size squared.
        known: Whether the irreducible loss is known.
        refits: Refits of each bootstrap.
        jobs: Processes at a time.
        out: JSON file for the figures.
    """
    rows: list[Figures] = []
    for law in laws:
        start = time.perf_counter()
        study_law = partial(study, law, noise=noise, bend=bend, known=known, refits=refits)  # type: ignore[arg-type]
        if jobs > 1:
            with ProcessPoolExecutor(jobs) as pool:
                shares = pd.DataFrame(list(pool.map(study_law, range(tables))))
        else:
            shares = pd.DataFrame([study_law(seed) for seed in range(tables)])
        held = [place for place in PLACES if place in shares]
        row = {
            place: f"{shares[place].mean():.1%} ({shares[place, 'width'].median():.1%} wide)"
            for place in held
        }
        error = float(shares[held].std().max()) / np.sqrt(tables)
        rows.append({"law": law, **row, "standard error": f"{error:.1%}"})
        print(rows[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
        options: Figures = {"tables": tables, "noise": noise, "bend": bend, "known": known, "refits": refits}
        description = provenance("mnmt-laws", "numpy", "scipy")
        write_report(
            out, "coverage of every law's 95% prediction intervals", {**options, "laws": rows}, description
        )
    print_table(rows)


def study(
    law: LawName, seed: int, *, noise: float, bend: float, known: bool, refits: int
) -> dict[Hashable, float]:
    """Return the share of one table's new models that lie in their intervals, and the width."""
    truth = example_law(law, partners=TASKS[1:], weights=WEIGHTS, seed=seed)
    table = with_new_models(truth, noise=noise, seed=seed)
    share = np.log(table["size"] / SIZES[0]) / np.log(SIZES[-1] / SIZES[0])
    table["value"] *= 1.0 + bend * share**2
    method = ResidualBootstrap(refits=refits, seed=seed)
    fitted = fit(
        table[table["place"] == "table"], law=anchored(truth), uncertainty=method,
        irreducible="bound" if known else "ignore",
    )  # fmt: skip
    held: dict[Hashable, float] = {}
    for place in PLACES:
        rows = table[table["place"] == place]
        if len(rows):
            interval, values = predict_interval(fitted, rows), rows["value"].to_numpy()
            held[place] = float(np.mean((interval.lower <= values) & (values <= interval.upper)))
            held[place, "width"] = float(np.median((interval.upper - interval.lower) / interval.predicted))
    return held


def with_new_models(known: KnownLaw, *, noise: float, seed: int) -> pd.DataFrame:
    """Return a table whose column `place` says which rows are fitted and where the others lie."""
    reads = set(known.definition.predictors)
    if not reads & {"size", "flops", "encoder_size"}:
        table = table_of(known, noise=noise, seed=seed, seeds=2)
        return table.assign(place=np.where(table["seed"] == 0, "table", "inside"))
    extra = {
        "inside": np.sqrt(SIZES[2] * SIZES[3]),
        **{name: SIZES[-1] * k for name, k in PLACES.items() if k},
    }
    longer = {"inside": np.sqrt(LENGTHS[1] * LENGTHS[2])}
    longer |= {name: LENGTHS[-1] * k for name, k in PLACES.items() if k}
    lengths = (*LENGTHS, *longer.values()) if "tokens" in reads else tuple(LENGTHS)
    table = table_of(known, noise=noise, seed=seed, sizes=(*SIZES, *extra.values()), lengths=lengths)
    place = table["size"].map({size: name for name, size in extra.items()}).fillna("table")
    if "tokens" in reads:
        by_length = table["tokens"].map({length: name for name, length in longer.items()}).fillna("table")
        place = place.where(place == by_length, "elsewhere")
    return table.assign(place=place)


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


if __name__ == "__main__":
    run(main, smoke={"laws": ("joint",), "tables": 1, "refits": 5})
