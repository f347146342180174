"""Hold the law of studies/two-word-contexts.toml against what is known of its languages, in three draws.

`languages-2.csv` and `languages-3.csv` are the same study with `[data.synthetic] seed` 2 and 3. Where the
known irreducible loss is withheld from a fit, nothing but the losses can put L∞ near it.

    python -m studies.analysis.contexts
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import Figures, run
from mnmt_laws import (
    LawFit,
    ResidualBootstrap,
    compare_irreducible,
    fit,
    fitted_fraction,
    observe,
    predict_held_out,
)
from mnmt_laws.fitting.uncertainty import bounds_of
from studies.analysis.rulers import draw_predictions, held_out_errors, median_error, with_rulers
from studies.page import PAGES, write_page

OUT = PAGES / "contexts"
TABLES = {1: "runs.csv", 2: "languages-2.csv", 3: "languages-3.csv"}
"""Run tables by the seed of their languages."""

WEIGHT = 0.3
"""The weight of f."""


def main(*, refits: int = 200, draws: int = len(TABLES), out: Path = OUT) -> None:
    """Print and write what the law says of each draw of the languages.

    Args:
        refits: Refits for the intervals.
        draws: How many draws of the languages, the first ones.
        out: Folder for results.json and the figure.
    """
    results: dict[str, list[Figures]] = {"parameters": [], "held out": [], "without length": []}
    tables: list[pd.DataFrame] = []
    for seed in [*TABLES][:draws]:
        observations, languages = observe(OUT / TABLES[seed], testset="test"), {"languages": seed}
        fitted = fit(observations, law="share-tied", uncertainty=ResidualBootstrap(refits=refits))
        held_out = predict_held_out(fitted)
        rows = with_rulers(observations, held_out.rows)
        tables.append(rows.assign(languages=f"languages {seed}"))
        results["parameters"] += [languages | row for row in parameters(fitted)]
        results["held out"] += [languages | row for row in held_out_errors(observations, held_out)]
        results["without length"].append(languages | without_length(fitted, rows[rows["new_length"]]))
    predictions = pd.concat(tables, ignore_index=True)
    write_page(out, results, {"predictions": draw_predictions(predictions, predictions["languages"])})


def parameters(fitted: LawFit) -> Iterator[Figures]:
    """Yield α and f(p) of each task with 95% intervals, and L∞ fitted without its known value."""
    method = ResidualBootstrap(refits=fitted.draws.sizes["draw"])
    ignorant = fit(fitted.observations, law="share-tied", uncertainty=method, irreducible="ignore")
    alpha = fitted.interval().alpha
    for limit in compare_irreducible(ignorant).to_dict("records"):
        task = limit["task"]
        f, draws = (fitted_fraction(fitted, task=task, weight=WEIGHT, draws=each) for each in (False, True))
        yield limit | {
            "alpha": alpha.sel(task=task).to_numpy().tolist(),
            f"f({WEIGHT})": float(f), f"f({WEIGHT})_interval": [float(end) for end in bounds_of(draws)],
        }  # fmt: skip


def without_length(fitted: LawFit, rows: pd.DataFrame) -> Figures:
    """Return the error on longer training of a law that does not know the length, and its f by length.

    It is fitted to the models of each length; the error is that of the one fitted to the longest.
    """
    row: Figures = {}
    for step, of_length in fitted.rows.groupby("step"):
        law = fit(of_length, law="capacity", uncertainty=ResidualBootstrap(refits=0))
        row["error"] = median_error(rows.assign(predicted=law.predict(rows)), "predicted")
        for task in law.tasks:
            share = float(fitted_fraction(law, task=task, weight=WEIGHT))
            row[f"f({WEIGHT}) of {task} at {step:,.0f} steps"] = share
    return row


if __name__ == "__main__":
    run(main, smoke={"refits": 2, "draws": 1, "out": Path(gettempdir()) / "mnmt-contexts"})
