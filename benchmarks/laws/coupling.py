"""Whether size and data interact where there is no mixture: published tables of one task.

Claim: a factor N^e in the term of data, which the laws of length in mixtures have, pays where p = 1, too; its
sign differs between tables. Peer: the law of Hoffmann et al. 2022, its exponents free or tied. Cited in
docs/laws/mathematics.md.

The tables are not ours to distribute: `chinchilla_240.csv` and `gordon2021_nmt.csv` in the folder that
`--tables` or the environment variable MNMT_TABLES names. What is not there is skipped with a sentence.

    python -m benchmarks.laws.coupling --tables tables --out benchmarks/results/laws/coupling.json
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.laws.published import OUTLIERS, run_table
from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from mnmt_laws import LawFit, ResidualBootstrap, fit
from mnmt_laws.laws import LAWS

FAMILY = ("chinchilla", "chinchilla-tied", "chinchilla-coupled")


def main(*, tables: Path | None = None, laws: Names = FAMILY, refits: int = 200, out: Out = None) -> None:
    """Print a row for each table and law.

    Args:
        tables: Folder of the tables; by default that of MNMT_TABLES.
        laws: Names of the laws.
        refits: Refits behind the interval of e.
        out: JSON file for the figures.
    """
    folder = tables or Path(os.environ.get("MNMT_TABLES", "."))
    rows = [study(name, table, law, refits) for name, table in published(folder) for law in laws]
    if rows:
        print_table(rows)
        write_report(out, "interaction of size and data", {"rows": rows}, provenance("mnmt-laws", "numpy"))


def published(folder: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables that are there."""
    path = folder / "chinchilla_240.csv"
    if path.exists():
        points = pd.read_csv(path).dropna(subset="loss").sort_values("loss").iloc[:-OUTLIERS]
        tokens = points["Training FLOP"] / 6 / points["Model Size"]
        yield "Chinchilla", run_table(points["Model Size"], tokens, points["loss"], "text")
    else:
        print(f"Chinchilla skipped: {path} is not there.")
    path = folder / "gordon2021_nmt.csv"
    if path.exists():
        for pair, points in pd.read_csv(path).groupby("Lang"):
            yield (
                f"Gordon {pair}",
                run_table(points["params"], points["data_bytes"], points["ent_dev"], "text"),
            )
    else:
        print(f"Gordon skipped: {path} is not there.")


def study(name: str, table: pd.DataFrame, law: str, refits: int) -> Figures:
    """Return a law's error and BIC, its errors on the largest and the longest fifth, and e."""
    fitted = fit_to(table, law, refits)
    error, count = log_errors(fitted, table), len(fitted.law.parameters)
    figures: Figures = {
        "table": name,
        "law": f"`{law}`",
        "error": f"{rms(error):.2%}",
        "BIC": f"{len(table) * np.log(np.mean(error**2)) + count * np.log(len(table)):.0f}",
    }
    for what, column in (("larger", "size"), ("longer", "tokens")):
        last = table[column] > table[column].quantile(0.8)
        figures[what] = f"{rms(log_errors(fit_to(table[~last], law), table[last])):.2%}"
    if "e_size" in fitted.parameters:
        low, high = np.quantile(fitted.draws["e_size"], [0.025, 0.975])
        figures["e"] = f"{float(fitted.parameters['e_size'][0]):+.3f} ({low:+.3f}, {high:+.3f})"
    return figures


def fit_to(table: pd.DataFrame, law: str, refits: int = 0) -> LawFit:
    """Fit a law to some models."""
    return fit(table.reset_index(drop=True), law=LAWS[law], uncertainty=ResidualBootstrap(refits=refits))


def log_errors(fitted: LawFit, table: pd.DataFrame) -> np.ndarray:
    """Return log of predicted over observed loss."""
    rows = table.reset_index(drop=True)
    return np.asarray(np.log(fitted.predict(rows) / rows["value"].to_numpy()))


def rms(errors: np.ndarray) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(errors**2)))


if __name__ == "__main__":
    run(main, smoke={"laws": ("chinchilla",), "refits": 3})
