"""Three tasks from two, and one language as source or as target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import t as student

from mnmt_laws import LawFit, predict_interval
from mnmt_laws.laws import LawName
from studies.analysis.splitting.fractions import ratios
from studies.analysis.splitting.tables import above_entropy, fit_reducible, read, tables

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
    """Return rows with columns as `draw_three` takes them."""
    known = predict_interval(fitted, rows)
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


INTO, OUT = "many-to-one", "lexicon"


def direction(*, refits: int) -> list[dict[str, object]]:
    """Return how many times as large f is into one language as out of it, with a 95% interval over seeds."""
    if not {INTO, OUT} <= set(tables()):
        return []
    out = read(OUT)
    tasks = sorted(out["task"].unique())
    return [row for task in tasks for row in ratios(read_into(), out, task=task, refits=refits)]


def read_into() -> pd.DataFrame:
    """Return the table of translation into one language, its tasks named as those of the other direction."""
    rows = read(INTO)
    for column in ("task", "mixture"):
        rows[column] = rows[column].str.replace(r"(\w+)-xx", r"xx-\1", regex=True)
    return rows


def direction_by_size() -> pd.DataFrame:
    """Return without a law what sharing costs into one language over what it costs out of it.

    The cost is the reducible loss at a weight over that alone, of one size, task and seed; below 1 the
    direction into one language loses less. Geometric means over tasks and seeds with Student's 95% intervals.
    """
    if not {INTO, OUT} <= set(tables()):
        return pd.DataFrame()
    logs = log_costs(read_into()) - log_costs(read(OUT))
    groups = logs.groupby(level=["size", "weight"])
    means, counts = groups.mean(), groups.size()
    errors = groups.std() / counts**0.5 * student.ppf(0.975, counts - 1)
    low, high = np.exp(means - errors), np.exp(means + errors)
    return pd.DataFrame({"ratio": np.exp(means), "lower": low, "upper": high}).reset_index()


def log_costs(rows: pd.DataFrame) -> pd.Series:
    """Return log reducible loss less that alone, by task, size, seed and weight."""
    keys = ["task", "size", "seed", "weight"]
    logs = np.log(rows["reducible"]).groupby([rows[key] for key in keys]).mean().unstack("weight")
    costs: pd.Series = logs.drop(columns=1.0).sub(logs[1.0], axis=0).stack()
    return costs
