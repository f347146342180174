"""Models of three tasks, predicted from laws of two (Fernandes et al. 2023, app. H)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mnmt_laws import LawFit
from mnmt_laws.laws import LawName
from studies.analysis.splitting.tables import above_entropy, fit_reducible, read

LAWS: tuple[LawName, ...] = ("capacity", "share-tied")
STEPS = 2000


def predictions(law: LawName, *, refits: int) -> pd.DataFrame:
    """Return the reducible losses of models of three tasks beside a law's of their own weight.

    The law is fitted to models of one and two tasks of both lengths of `three`, or of the longer where it
    does not know length. The third task has no such models, and is left out.
    """
    lengths = [STEPS] if law == "capacity" else [500, STEPS]
    pairs = read("unrelated")
    fitted = fit_reducible(pairs[pairs["step"].isin(lengths)], law, refits=refits)
    three = read("three")
    rows = above_entropy(three[three["step"].isin(lengths) & three["task"].isin(fitted.tasks)])
    return with_predictions(fitted, rows)


def with_predictions(fitted: LawFit, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with columns as `draw_more_tasks` takes them."""
    known = fitted.prediction_interval(rows)
    return rows.assign(
        observed=rows["value"], predicted=known.predicted, lower=known.law_lower, upper=known.law_upper,
        predicted_lower=known.lower, predicted_upper=known.upper,
    )  # fmt: skip


def errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Return by length and weight a law's errors in log reducible loss, and how many are in its intervals."""
    logs = np.log(rows["predicted"] / rows["observed"])
    inside = rows["observed"].between(rows["predicted_lower"], rows["predicted_upper"])
    cells = rows.assign(square=logs**2, log=logs, inside=inside).groupby(["step", "weight"])
    table = cells.agg(
        values=("log", "size"), rms=("square", "mean"), mean=("log", "mean"), inside=("inside", "sum")
    )
    return table.assign(rms=np.sqrt(table["rms"])).reset_index()


def two_against_three(*, draws: int) -> Iterator[dict[str, object]]:
    """Yield how many times the loss of a model of two tasks that of three is, at the same weight of its task.

    Geometric means over sizes, with 95% intervals over seeds. If f depends on a task's own weight alone,
    it is 1.
    """
    rng = np.random.default_rng(0)
    cells = [("xx-aa", weight, step) for weight in (0.05, 0.5) for step in (500, STEPS)]
    tables = [read("three"), read("unrelated")]
    sizes = set(tables[0]["size"])
    for task, weight, step in cells:
        parts = [
            rows[rows["task"].eq(task) & rows["weight"].eq(weight) & rows["step"].eq(step)] for rows in tables
        ]
        logs = [
            [np.log(part[part["size"] == size]["reducible"].to_numpy()) for size in sizes] for part in parts
        ]
        samples = [[mean_of_means(each, rng) for each in logs] for _ in range(draws)]
        gaps = np.array([one - other for one, other in samples])
        estimate = np.subtract(*[np.mean([cell.mean() for cell in each]) for each in logs])
        low, high = np.quantile(gaps, [0.025, 0.975])
        yield {
            "task": task, "weight": weight, "step": step, "ratio": float(np.exp(estimate)),
            "lower": float(np.exp(low)), "upper": float(np.exp(high)),
        }  # fmt: skip


def mean_of_means(cells: list[np.ndarray], rng: np.random.Generator) -> float:
    """Return the mean over cells of the means of values drawn again."""
    return float(np.mean([rng.choice(cell, len(cell)).mean() for cell in cells]))
