"""Hold the law of studies/two-word-contexts.toml against what is known of its languages, in three draws.

`languages-2.csv` and `languages-3.csv` are the same study with `[data.synthetic] seed` 2 and 3. Where the
known irreducible loss is withheld from a fit, nothing but the losses can put L∞ near it.

    python -m studies.analysis.contexts
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import Figures, run
from mnmt_laws import (
    LawFit,
    Observations,
    ResidualBootstrap,
    compare_irreducible,
    fit,
    observe,
    predict_held_out,
)
from mnmt_laws.answers.fractions import fitted_fraction
from mnmt_laws.fitting.uncertainty import bounds_of
from studies.analysis.rulers import draw_predictions, held_out_errors, median_error, with_rulers
from studies.page import PAGES, write_page

OUT = PAGES / "contexts"
TABLES = {1: "runs.csv", 2: "languages-2.csv", 3: "languages-3.csv"}
"""Run tables by the seed of their languages."""

WEIGHT = 0.3
"""The weight of f."""
COLUMNS = {"with length": "predicted", "without length": "ignorant", "line": "line"}


def main(*, refits: int = 200, draws: int = len(TABLES), out: Path = OUT) -> None:
    """Print and write what the law says of each draw of the languages.

    Args:
        refits: Refits for the intervals.
        draws: How many draws of the languages, the first ones.
        out: Folder for results.json and the figure.
    """
    results: dict[str, list[Figures]] = {"parameters": [], "held out": [], "twice the training": []}
    rows: list[pd.DataFrame] = []
    for seed in [*TABLES][:draws]:
        observations, languages = observe(OUT / TABLES[seed], testset="test"), {"languages": seed}
        fitted = fit(observations, law="share-tied", uncertainty=ResidualBootstrap(refits=refits))
        limits = limits_alone(observations, refits)
        results["parameters"] += [languages | row for row in parameters(fitted, limits)]
        held_out = predict_held_out(fitted)
        rows.append(with_rulers(observations, held_out.rows).assign(languages=f"languages {seed}"))
        results["held out"] += [languages | row for row in held_out_errors(observations, held_out)]
        results["twice the training"].append(languages | by_length(fitted, rows[-1]))
    predictions = pd.concat(rows, ignore_index=True)
    write_page(out, results, {"predictions": draw_predictions(predictions, predictions["languages"])})


def limits_alone(observations: Observations, refits: int) -> pd.DataFrame:
    """Return L∞ fitted without its known value, as `compare_irreducible` does, by task."""
    method = ResidualBootstrap(refits=refits)
    ignorant = fit(observations, law="share-tied", uncertainty=method, irreducible="ignore")
    return compare_irreducible(ignorant).set_index("task")


def parameters(fitted: LawFit, limits: pd.DataFrame) -> Iterator[Figures]:
    """Yield α, the limits and f(p) of each task, with 95% intervals."""
    intervals = fitted.interval()
    for task in fitted.tasks:
        alpha = [float(value) for value in intervals.alpha.sel(task=task)]
        limit = limits.loc[task]
        row = {"task": task, "alpha": float(fitted.parameters.alpha.sel(task=task)), "alpha_interval": alpha}
        row |= {"known": limit["true"], "limit": limit["fitted"]}
        row |= {"limit_interval": list(limit[["lower", "upper"]])}
        row |= {f"f({WEIGHT})": float(fitted_fraction(fitted, task=task, weight=WEIGHT))}
        draws = fitted_fraction(fitted, task=task, weight=WEIGHT, draws=True)
        yield row | {f"f({WEIGHT})_interval": [float(end) for end in bounds_of(draws)]}


def by_length(fitted: LawFit, rows: pd.DataFrame) -> Figures:
    """Return errors on the models trained twice as long as any fitted one, and f by length.

    `share-tied` was fitted to all lengths; the law without a length to the longest fitted one alone, whose
    losses it takes for those of any length.
    """
    rows, laws = rows[rows["new_length"]], laws_by_length(fitted.observations)
    rows = rows.assign(ignorant=list(laws.values())[-1].predict(rows))
    row = {name: median_error(rows, column) for name, column in COLUMNS.items()}
    for tokens, law in laws.items():
        for task in law.tasks:
            share = float(fitted_fraction(law, task=task, weight=WEIGHT))
            row[f"f({WEIGHT}) of {task} at {tokens:.3g} tokens"] = share
    return row


def laws_by_length(observations: Observations) -> dict[float, LawFit]:
    """Return the capacity law of the models of each training length, by its tokens."""
    return {
        float(part["tokens"].max()): fit(
            replace(observations, frame=part.reset_index(drop=True)),
            law="capacity",
            uncertainty=ResidualBootstrap(refits=0),
        )
        for _, part in observations.fit.groupby("step")
    }


if __name__ == "__main__":
    run(main, smoke={"refits": 2, "draws": 1, "out": Path(gettempdir()) / "mnmt-contexts"})
