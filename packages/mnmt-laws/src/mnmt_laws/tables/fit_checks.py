"""Checks that observations pass before a law is fitted to them."""

from __future__ import annotations

import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.lengths import measure_lengths
from mnmt_laws.tables.observations import Observations

_LENGTHS = {"tokens", "flops"}


def check_lengths(observations: Observations, law: Law) -> tuple[str, ...]:
    """Return a warning where a law that does not know length would compare runs of unequal length.

    Raises:
        TableError: If runs of the same task, mixture and size differ in length by more than 1%.
    """
    if _LENGTHS & set(law.predictors):
        return ()
    rows = observations.rows_to_fit(zero_shot=law.zero_shot)
    lengths = measure_lengths(rows)
    if not lengths.differ:
        return ()
    other = "length" if law.knows_mixture or "weight" in law.predictors else "chinchilla"
    remedy = (
        f"read all at one length (--at {lengths.column}=…) or fit a law of length (such as --law {other})"
    )
    if lengths.first_pair is not None:
        pair = observations.locator.name(rows, *lengths.first_pair)
        short, long = (lengths.by_run.iloc[place] for place in lengths.first_pair)
        raise TableError(
            f"{pair}: the same task, mixture and size after {short:.4g} and {long:.4g} {lengths.unit}, but "
            f"the {law.name} law does not know length; {remedy}."
        )
    return (
        f"{observations.source}: runs were trained for {lengths.describe()}, but the {law.name} law does not "
        f"know length and takes its effect for that of size or mixture; {remedy}.",
    )


def check_constant(rows: pd.DataFrame, observations: Observations) -> None:
    """Check that every task has more than one value.

    Raises:
        TableError: If all values of a task with several rows are equal.
    """
    for task, values in rows.groupby("task")["value"]:
        if len(values) > 1 and values.min() == values.max():
            where = observations.locator.name(rows, int(rows["task"].eq(task).to_numpy().argmax()))
            raise TableError(
                f"{where}: {observations.metric} of {task} is {values.iloc[0]:g} in all {len(values)} rows, "
                f"so it does not depend on size or mixture; leave the task out, or choose another --metric."
            )


def fit_warnings(observations: Observations, law: Law) -> tuple[str, ...]:
    """Return what a law leaves out of observations or passes over in them, in a sentence each."""
    lines = check_lengths(observations, law)
    count = len(observations.zero_shot)
    if law.zero_shot or not count:
        return lines
    rows = "row (weight 0) is" if count == 1 else "rows (weight 0) are"
    left_out = f"{count} zero-shot {rows} left out of the fits: the {law.name} law holds for weights above 0."
    return (left_out, *lines)
