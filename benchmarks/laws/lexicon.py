r"""Why a task of the synthetic study gets less of the model than its weight: concepts grow slower than N.

Claim: a model holds the most frequent concepts of a lexicon, and their number grows as N^b with b well below
1, at every weight alike. So a task that holds a share u of what it holds alone has an effective fraction of
u^(1/b), which is below u. No peer. Cited in docs/studies/synthetic.md.

From each loss it computes how many concepts the model must hold. An unknown concept costs the logarithm of
the inventory for each syllable, so the loss above the entropy is that cost times the probability of an
unknown concept. With `--more`, the same for a table of longer runs.

    python -m benchmarks.laws.lexicon --out benchmarks/results/laws/lexicon.json
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measurement import Out, print_table, provenance, run, write_report
from mnmt_data import read_study
from mnmt_data.prepare import DataConfig
from mnmt_data.synthetic import SyntheticConfig, zipf_probabilities
from mnmt_laws import Perturbation, effective_fractions, fit, observe

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "docs" / "studies" / "synthetic" / "runs.csv"
STUDY = ROOT / "studies" / "synthetic.toml"


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
        runs: The run table of the synthetic study.
        more: Run tables of the same study trained longer.
        out: JSON file for the figures.
    """
    config = read_study(STUDY).section("data", DataConfig).synthetic
    assert config is not None  # the study is synthetic
    rows = [row for path in (runs, *more) for row in shares_of(path, config)]
    numbers = ("weight", "exponent", "share", "storage", "exposure", "implied", "fraction")
    print_table(
        [
            {"table": row.table, "task": row.task, **{name: f"{getattr(row, name):.2f}" for name in numbers}}
            for row in rows
        ]
    )
    description = provenance("mnmt-data", "mnmt-laws", "numpy")
    write_report(out, "concepts held", {"study": STUDY.name, "results": [*map(asdict, rows)]}, description)


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
    syllables, words = config.target_syllables, config.words_per_sentence
    cost = words * syllables * np.log(config.syllable_inventory) / (words * syllables + 1)  # a token
    unknown = 1 - np.cumsum(zipf_probabilities(config.concepts, config.zipf_exponent))
    excess = (rows["value"] - rows["irreducible"]).to_numpy(float) / cost
    held: Floats = np.interp(-excess, -unknown, np.arange(1, config.concepts + 1))
    return held


if __name__ == "__main__":
    run(main, smoke={})
