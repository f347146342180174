r"""Why a task of the lexicon study gets less of the model than its weight: concepts grow slower than N.

Claim: a model holds the most frequent concepts of a lexicon, and their number grows as N^b with b well below
1, at every weight alike. So a task that holds a share u of what it holds alone has an effective fraction of
u^(1/b), which is below u. No peer. Cited in docs/studies/lexicon.md.

From each loss it computes how many concepts the model must hold. An unknown concept costs the logarithm of
the inventory for each syllable, less the entropy of its two spellings, so the loss above the entropy is that
cost times the probability of an unknown concept. With `--more`, the same for a table of longer runs, and
f̂(0.5) of laws of training length fitted to both.

    python -m benchmarks.laws.lexicon --out benchmarks/results/laws/lexicon.json
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from mnmt_data import read_study
from mnmt_data.prepare import DataConfig
from mnmt_data.synthetic import SyntheticConfig, zipf_probabilities
from mnmt_laws import Perturbation, effective_fractions, fit, fitted_fraction, observe
from mnmt_laws.laws import LawName

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "docs" / "studies" / "lexicon" / "runs.csv"
LENGTH_LAWS: tuple[LawName, ...] = ("share-tied", "share", "length", "length-shared", "length-coupled")
STUDY = ROOT / "studies" / "lexicon.toml"


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one task holds at one weight, beside what it holds alone."""

    table: str
    task: str
    weight: float
    exponent: float
    """b, by which the number of concepts held grows with N, over the sizes of the fit."""
    share: float
    """u, concepts held over concepts held alone; the mean over sizes."""
    storage: float
    """The share of concepts that minimises the training loss where both tasks share one store."""
    exposure: float
    """The share of concepts that are seen as often as the rarest that a task alone holds."""
    implied: float
    """u^(1/b), the effective fraction that follows."""
    fraction: float
    """f(p) of the joint law."""


def main(*, runs: Path = RUNS, more: tuple[Path, ...] = (), out: Out = None) -> None:
    """Compute and print a table.

    Args:
        runs: The run table of the lexicon study.
        more: Run tables of the same study trained longer.
        out: JSON file for the figures.
    """
    config = read_study(STUDY).section("data", DataConfig).synthetic
    assert isinstance(config, SyntheticConfig)  # the study says so
    rows = [row for path in (runs, *more) for row in shares_of(path, config)]
    numbers = ("weight", "exponent", "share", "storage", "exposure", "implied", "fraction")
    print_table(
        [
            {"table": row.table, "task": row.task, **{name: f"{getattr(row, name):.2f}" for name in numbers}}
            for row in rows
        ]
    )
    endless = [fraction_of_endless_training(law, (runs, *more)) for law in LENGTH_LAWS] if more else []
    print_table(endless)
    figures = {"study": STUDY.name, "results": [*map(asdict, rows)], "endless training": endless}
    write_report(out, "concepts held", figures, provenance("mnmt-data", "mnmt-laws", "numpy"))


def fraction_of_endless_training(law: LawName, paths: Sequence[Path]) -> Figures:
    """Return f̂(0.5) of the first task by a law of length, fitted to all tables together."""
    tables = [pd.read_csv(path).assign(architecture="") for path in paths]
    tables = [table.assign(run=table["step"].map(str) + table["run"]) for table in tables]
    rows = pd.concat(tables)
    task = min(rows["task"])
    rows = rows[rows["task"].eq(task) & rows["weight"].gt(0)]
    fitted = fit(rows, law=law, metric="loss", testset="test")
    ends = np.quantile(fitted_fraction(fitted, task=task, weight=0.5, draws=True), [0.025, 0.975])
    value = float(fitted_fraction(fitted, task=task, weight=0.5))
    interval = f"{ends[0]:.2f} to {ends[1]:.2f}"
    return {"law": law, "f(0.5)": f"{value:.2f}", "95%": interval, "scatter": f"{fitted.scatter:.1%}"}


def shares_of(path: Path, config: SyntheticConfig) -> list[Share]:
    """Return what each task of a run table holds at each weight below 1."""
    observations = observe(path, metric="loss", testset="test")
    joint = fit(observations, law="joint", uncertainty=Perturbation(refits=0))
    fractions = effective_fractions(joint).fractions.value
    rows = observations.fit.assign(concepts=concepts_held(observations.fit, config))
    results = []
    for task, task_rows in rows.groupby("task"):
        concepts = task_rows.pivot_table(index="size", columns="weight", values="concepts")
        weights = [float(weight) for weight in concepts.columns.to_numpy(float) if weight < 1]
        for weight in weights if 1.0 in concepts else []:
            numbers = share_of(concepts[weight].dropna(), concepts[1.0], weight, config.zipf_exponent)
            fraction = float(fractions.sel(task=task, weight=weight))
            name = "study" if path == RUNS else path.stem
            results.append(Share(table=name, task=str(task), weight=weight, fraction=fraction, **numbers))
    return results


def share_of(concepts: pd.Series, alone: pd.Series, weight: float, s: float) -> dict[str, float]:
    """Return the exponent and the shares of one task at one weight, from concepts by size."""
    slope = np.polyfit(np.log(concepts.index.to_numpy(float)), np.log(concepts.to_numpy(float)), 1)[0]
    exponent, share = float(slope), float((concepts / alone).mean())
    return {
        "exponent": exponent,
        "share": share,
        "storage": weight ** (1 / s) / (weight ** (1 / s) + (1 - weight) ** (1 / s)),
        "exposure": weight ** (1 / s),
        "implied": share ** (1 / exponent),
    }


def concepts_held(rows: pd.DataFrame, config: SyntheticConfig) -> Floats:
    """Return (n,) how many of the most frequent concepts leave each loss above the entropy."""
    cost = rows["task"].map(config.unknown_cost_of)
    unknown = 1 - np.cumsum(zipf_probabilities(config.concepts, config.zipf_exponent))
    excess = ((rows["value"] - rows["irreducible"]) / cost).to_numpy(float)
    held: Floats = np.interp(-excess, -unknown, np.arange(1, config.concepts + 1))
    return held


if __name__ == "__main__":
    run(main, smoke={})
