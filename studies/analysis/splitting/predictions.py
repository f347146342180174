"""Reducible losses of models left out, predicted by laws and by rulers that know no law."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import predict_held_out
from mnmt_laws.laws import LawName
from studies.analysis.rulers import coverage, median_error, with_rulers
from studies.analysis.splitting.tables import fit_reducible, read

OF_LENGTH: tuple[LawName, ...] = ("share-tied", "exponent-exposure")
"""Laws that know the length, fitted to all lengths together."""
UNSEEN = 0.5
"""The weight left out."""


def questions(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Yield what is predicted, the rows to fit and the rows left out."""
    largest, longest = rows["size"].max(), rows["step"].max()
    is_largest, is_longest = rows["size"].eq(largest), rows["step"].eq(longest)
    for step, left_out in rows[is_largest].groupby("step"):
        yield f"size {largest:,}, {step:,} steps", rows[~is_largest], left_out
    for step, left_out in rows[rows["weight"].eq(UNSEEN)].groupby("step"):
        yield f"p = {UNSEEN:g}, {step:,} steps", rows[rows["weight"].ne(UNSEEN)], left_out
    yield f"{longest:,} steps from fewer", rows[~is_longest], rows[is_longest]
    three = read("three")
    for step, left_out in three[three["task"].isin(rows["task"])].groupby("step"):
        yield f"three tasks, {step:,} steps", rows[rows["size"].isin(left_out["size"])], left_out


def prediction_errors(rows: pd.DataFrame, *, refits: int) -> Iterator[Figures]:
    """Yield each question's median errors in log reducible loss, and of one law the intervals of a new model.

    A law that does not know the length predicts where that was trained. *line* and *interpolation* are
    those of `studies.analysis.rulers`; *inside* counts losses in the intervals of `law`, and *a constant
    inside* those that hold the mean of the task's fitted losses.
    """
    for question, train, test in questions(rows):
        is_trained_length = test["step"].isin(train["step"]).all()
        laws: tuple[LawName, ...] = ("capacity", *OF_LENGTH) if is_trained_length else OF_LENGTH
        law = laws[0]
        tables = {each: predict(train, test, each, refits=refits * (each == law)) for each in laws}
        yield {
            "predicted": question, "losses": len(test),
            **{each: median_error(table, "predicted") for each, table in tables.items()},
            **{ruler: median_error(tables[law], ruler) for ruler in ("line", "interpolation")},
            "law": law, **coverage(tables[law]),
        }  # fmt: skip


def predict(train: pd.DataFrame, test: pd.DataFrame, law: LawName, *, refits: int) -> pd.DataFrame:
    """Return the rows of `HeldOut` with rulers, by a law that knows lengths or is fitted to theirs."""
    if law not in OF_LENGTH:
        train = train[train["step"].isin(test["step"])]
    rows = pd.concat([train.assign(role="fit"), test.assign(role="held-out")])
    fitted = fit_reducible(rows, law, refits=refits)
    return with_rulers(fitted.observations, predict_held_out(fitted).rows)
