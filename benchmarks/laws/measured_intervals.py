"""Coverage and width of 95% prediction intervals of new models on measured tables.

Claim: intervals of new models hold about 95 of 100 measured losses where a back-test shows how the law errs,
and say so where none can. A width stands beside each coverage, and how many intervals hold the mean of the
fitted values: an interval that a constant lies in tells little. No peer. Cited in docs/laws/uncertainty.md.

Real text: runs of 800 steps are predicted from those of 200 and 400, and the largest size from the others, on
both test sets. The studies with known entropies: their own held-out runs. Tables of others, named as in
`others_tables`: ScaleBench's held-out mixtures, and RegMix's. The corner: tables of Farseer's form with .1%
noise, fitted by `chinchilla`, whose held-out runs have 1.7 to 4 times the compute of all others.

    python -m benchmarks.laws.measured_intervals --tables tables
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.laws.others_tables import read_regmix
from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from mnmt_laws import Observations, ResidualBootstrap, fit, observe, predict_held_out
from mnmt_laws.laws import LawName

STUDIES = Path("docs/studies")
REAL = ("en-de-zh", "en-de-fr", "de-zh-en")
KNOWN: dict[str, LawName] = {
    "contexts/runs": "share-tied", "contexts/languages-2": "share-tied", "contexts/languages-3": "share-tied",
    "synthetic/runs": "capacity",
}  # fmt: skip
Case = tuple[str, Observations, LawName]


def main(
    *, tables: Path | None = None, refits: int = 100, domains: int = 2, corners: int = 20, out: Out = None
) -> None:
    """Print a row for each table and kind of new model.

    Args:
        tables: Folder of the tables of others; by default that of MNMT_TABLES.
        refits: Refits of each bootstrap.
        domains: How many of RegMix's losses to fit.
        corners: Simulated tables with a corner.
        out: JSON file for the figures.
    """
    rows: list[Figures] = []
    for name, observations, law in cases(tables or Path(os.environ.get("MNMT_TABLES", ".")), domains):
        rows.append({"new models": name, "law": law, **intervals(observations, law, refits)})
        print(rows[-1], flush=True)
    parts = [intervals(observe(corner(seed)), "chinchilla", refits) for seed in range(corners)]
    rows.append({"new models": "corner of size and length", "law": "chinchilla", **total(parts)})
    print_table(rows)
    write_report(out, "intervals on measured tables", {"tables": rows}, provenance("mnmt-laws", "numpy"))


def cases(folder: Path, domains: int) -> Iterator[Case]:
    """Yield the name of each table, its observations with held-out rows, and the law."""
    for pair in REAL:
        table = pd.read_csv(STUDIES / "real-text" / f"{pair}.csv")
        table = table[(table["metric"] == "loss") & table["step"].isin([200, 400, 800])]
        for testset, rows in table[table["testset"] != "dev"].groupby("testset"):
            longest, largest = rows["step"] == 800, rows["size"] == rows["size"].max()
            yield f"{pair}, {testset}, 800 steps", held(rows, longest), "share-tied"
            yield f"{pair}, {testset}, largest size", held(rows, largest), "share-tied"
    for name, law in KNOWN.items():
        yield name, observe(STUDIES / f"{name}.csv", metric="loss", testset="test"), law
    if (folder / "scalebench_domain.csv").exists():
        for law in ("transfer-capacity", "simplex-capacity", "mixture-additive"):
            yield "ScaleBench, new mixtures", observe(folder / "scalebench_domain.csv"), law
    if (folder / "regmix").exists():
        fitted, new = read_regmix(folder / "regmix", "train"), read_regmix(folder / "regmix", "test")
        table = pd.concat([fitted, new], ignore_index=True)
        table = table[table["task"].isin(list(dict.fromkeys(table["task"]))[:domains])]
        yield "RegMix, new mixtures", held(table, table["run"].str.startswith("test")), "transfer"


def held(rows: pd.DataFrame, mask: pd.Series) -> Observations:
    """Return observations whose masked rows are held out."""
    return observe(rows.assign(role=np.where(mask, "held-out", "fit")))


def intervals(observations: Observations, law: LawName, refits: int) -> Figures:
    """Return how many held-out values lie in their intervals, and the median width."""
    fitted = fit(observations, law=law, uncertainty=ResidualBootstrap(refits=refits))
    rows = predict_held_out(fitted).rows.dropna(subset=["predicted_lower", "predicted_upper"])
    lower, upper = rows["predicted_lower"], rows["predicted_upper"]
    constant = rows["task"].map(fitted.rows.groupby("task")["value"].mean())
    entropy = rows["task"].map(observations.irreducible_of)
    known, shares = np.isfinite(entropy).all(), (upper - lower) / (rows["predicted"] - entropy)
    return {
        "count": len(rows),
        "inside": int(rows["observed"].between(lower, upper).sum()),
        "median error": f"{rows['error'].abs().median():.1%}",
        "median width": f"{((upper - lower) / rows['predicted']).median():.1%}",
        "of the reducible": f"{shares.median():.0%}" if known else "",
        "hold a constant": int(constant.between(lower, upper).sum()),
        "begin below the entropy": int((lower < entropy).sum()) if known else "",
    }


def total(parts: list[Figures]) -> Figures:
    """Return the sums of counts, and the middle one of the widths and errors, over tables."""
    middle = parts[len(parts) // 2]
    counts = {name: sum(part[name] for part in parts) for name in ("count", "inside", "hold a constant")}
    return {name: counts.get(name, value) for name, value in middle.items()}


def corner(seed: int) -> pd.DataFrame:
    """Return runs up to a compute, and held-out ones of 1.7 to 4 times that, of fitted sizes and lengths."""
    steps = np.sqrt(2) ** np.arange(9)
    size, tokens = (axis.ravel() for axis in np.meshgrid(2e8 * steps, 4e9 * steps))
    factor, exponent = np.exp(88.01 * size**-0.1 - 5.8287), np.exp(-0.124 * size**0.123 + 0.424)
    value = np.exp(-0.021 * size**0.169 - 0.091) + factor * tokens**-exponent  # of Li et al. 2025
    value *= 1 + 0.001 * np.random.default_rng(seed).standard_normal(len(size))
    compute = size * tokens / (size.max() * tokens.max() / 4)
    table = pd.DataFrame({"size": size, "tokens": tokens, "value": value, "task": "lm", "weight": 1.0})
    table = table.assign(metric="loss", role=np.where(compute > 1.01, "held-out", "fit"))
    rows: pd.DataFrame = table.loc[(compute < 1.01) | (compute > 1.7)]
    return rows


if __name__ == "__main__":
    run(main, smoke={"refits": 3, "domains": 1, "corners": 1})
