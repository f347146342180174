"""Reducible losses of models left out, predicted by laws and by rulers that know no law."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import LawFit, predict_interval
from mnmt_laws.laws import LawName
from studies.analysis.rulers import coverage, median_error, ruler
from studies.analysis.splitting.tables import above_entropy, fit_reducible, read

AT_LENGTH: tuple[LawName, ...] = ("joint", "capacity")
"""Laws of one length."""
OF_LENGTH: tuple[LawName, ...] = ("share-tied", "exponent-exposure")
"""Laws fitted to all lengths together."""
UNSEEN = 0.5


def questions(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Yield what is predicted, the rows to fit and the rows left out."""
    for step, some in rows.groupby("step"):
        largest = some["size"].max()
        yield f"size {largest:,}, {step:,} steps", rows[rows["size"] < largest], some[some["size"] == largest]
    for step, some in rows.groupby("step"):
        yield (
            f"p = {UNSEEN:g}, {step:,} steps",
            rows[rows["weight"] != UNSEEN],
            some[some["weight"] == UNSEEN],
        )
    longest = rows["step"].eq(rows["step"].max())
    yield f"{rows['step'].max():,} steps from fewer", rows[~longest], rows[longest]
    three = read("three")
    for step, some in three[three["task"].isin(rows["task"])].groupby("step"):
        yield f"three tasks, {step:,} steps", rows[rows["size"].isin(some["size"])], some


def prediction_errors(rows: pd.DataFrame, *, refits: int) -> Iterator[Figures]:
    """Yield each question's median errors in log reducible loss, and of one law the intervals of a new model.

    *line* and *interpolation* are those of `studies.analysis.rulers`; *inside* counts losses in the intervals
    of `law`, and *a constant inside* those that hold the mean of the task's fitted losses.
    """
    for question, train, test in questions(rows):
        fits = dict(laws_of(train, test))
        law = "capacity" if "capacity" in fits else "share-tied"
        fitted = fit_reducible(_of_lengths(train, test, law), law, refits=refits)
        tests = with_intervals(fitted, test, train)
        name = "interpolation" if test["weight"].isin(train["weight"]).mean() < 1 else "line"
        rulers = [ruler(part, row) for part, row in _by_task(train, tests)]
        yield {
            "predicted": question, "losses": len(test),
            **{each: _error(tests, fit.predict(tests)) for each, fit in fits.items()},
            "line": None, "interpolation": None, name: _error(tests, rulers),
            "law": law, **coverage(tests),
        }  # fmt: skip


def _by_task(train: pd.DataFrame, tests: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, object]]:
    parts = dict([*above_entropy(train).groupby("task")])
    return ((parts[row.task], row) for row in tests.itertuples())


def laws_of(train: pd.DataFrame, test: pd.DataFrame) -> Iterator[tuple[str, LawFit]]:
    """Yield the fits of all laws that can predict the rows left out."""
    is_new = not set(test["weight"]) <= set(train["weight"])
    for law in (*AT_LENGTH, *OF_LENGTH):
        some = _of_lengths(train, test, law)
        if len(some) and not (is_new and law == "joint"):
            yield law, fit_reducible(some, law)


def _of_lengths(train: pd.DataFrame, test: pd.DataFrame, law: LawName) -> pd.DataFrame:
    """Return all rows for a law that knows length, else those of the lengths to be predicted."""
    return train if law in OF_LENGTH else train[train["step"].isin(test["step"])]


def with_intervals(fitted: LawFit, test: pd.DataFrame, train: pd.DataFrame) -> pd.DataFrame:
    """Return reducible losses with the columns of `HeldOut` that `coverage` reads."""
    rows = above_entropy(test)
    known = predict_interval(fitted, rows)
    return rows.assign(
        observed=rows["value"], predicted=known.predicted,
        predicted_lower=known.lower, predicted_upper=known.upper,
        constant=rows["task"].map(train.groupby("task")["reducible"].mean()),
    )  # fmt: skip


def _error(rows: pd.DataFrame, predicted: object) -> float | None:
    return median_error(rows.assign(by_law=predicted), "by_law")
