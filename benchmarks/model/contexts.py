"""Losses above the entropy of models of languages of contexts, by size and weight.

Claim: where target words depend smoothly on their context, and no word is rare, the reducible loss of a
language alone follows a power law of the size. No peer. Cited in docs/studies/claims.toml.

It trains the runs of studies/contexts.toml and takes their exact losses. With `--results`, it goes on where
it was interrupted.

    OMP_NUM_THREADS=1 python -m benchmarks.model.contexts --results results \
        --out benchmarks/results/model/contexts.json
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from benchmarks.studies import prepare, train_study, write_changed_study
from mnmt_laws import collect, observe

STUDY = Path(__file__).parents[2] / "studies" / "contexts.toml"


def main(
    *,
    results: Path | None = None,
    jobs: int = 2,
    steps: int = 2400,
    sentences: int = 620_000,
    words: int = 16,
    out: Out = None,
) -> None:
    """Train, and print a table.

    Args:
        results: Folder for data and runs; a temporary one by default.
        jobs: Runs trained at a time.
        steps: Training steps of each run.
        sentences: Training pairs of each task.
        words: Words of each language.
        out: JSON file for the figures.
    """
    with TemporaryDirectory() as temporary:
        study = write_study((results or Path(temporary)).absolute(), steps, sentences, words)
        prepare(study, study.parent)
        losses = losses_of(train_study(study, study.parent, jobs=jobs))
    rows = losses.reset_index().to_dict("records")
    print_table(
        [
            {str(name): f"{value:,.{0 if name == 'size' else 3}f}" for name, value in row.items()}
            for row in rows
        ]
    )
    law = power_law(losses["xx-aa, p = 1"])
    print(f"\nAlone: exponent {law['exponent']:.2f}, off by at most {law['largest_error']:.1%}")
    figures = {"study": STUDY.name, "results": rows, "alone": law}
    description = provenance("mnmt-data", "mnmt-model", "mnmt-laws", "torch", "numpy")
    write_report(out, "exact losses above the entropy, in nats a token", figures, description)


def write_study(results: Path, steps: int, sentences: int, words: int) -> Path:
    """Write the study into a folder of its own; return its file."""
    changes = {
        "\nsteps = 2400": f"\nsteps = {steps}",
        "warmup_steps = 100": f"warmup_steps = {min(100, steps // 4)}",
        "cooldown_steps = 1200": f"cooldown_steps = {steps // 2}",
        "train_sentences = 620_000": f"train_sentences = {sentences}",
        "\nwords = 16": f"\nwords = {words}",
    }
    return write_changed_study(results / "contexts" / "contexts.toml", STUDY, changes)


def losses_of(runs: Path) -> pd.DataFrame:
    """Return the losses above the entropy of the test sets, sizes by tasks and weights."""
    rows = observe(collect(runs).table, metric="loss", testset="test").fit
    rows = rows[rows["weight"].gt(0)].assign(reducible=rows["value"] - rows["irreducible"])
    rows["column"] = [
        f"{task}, p = {weight:g}" for task, weight in zip(rows["task"], rows["weight"], strict=True)
    ]
    return rows.pivot_table(index="size", columns="column", values="reducible")


def power_law(losses: pd.Series) -> Figures:
    """Fit a power law of the size to reducible losses, by least squares of logarithms.

    Returns:
        Its exponent, and the largest relative error of a size.
    """
    sizes, values = np.log(losses.index.to_numpy(float)), np.log(losses.to_numpy(float))
    slope, intercept = np.polyfit(sizes, values, 1)
    errors = np.abs(np.expm1(values - slope * sizes - intercept))
    return {"exponent": float(-slope), "largest_error": float(errors.max())}


if __name__ == "__main__":
    run(main, smoke={"jobs": 1, "steps": 4, "sentences": 3000, "words": 4})
