"""Checks that every run table passes before anything is computed from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.columns import (
    KNOWN_METRICS,
    LABELS,
    NUMBERS,
    REQUIRED,
    closest,
    read_labels,
    read_numbers,
)
from mnmt_laws.tables.mixture import parse_mixture
from mnmt_laws.tables.row_location import RowLocator, format_value, reject

ROLES = ("fit", "held-out")
CELL = (
    "architecture", "size", "encoder_size", "decoder_size", "mixture", "task", "weight", "testset", "metric",
    "seed",
)  # fmt: skip
"""Columns in which two measurements must differ; the same runs may be repeated with other seeds."""

_TOLERANCE = 1e-6


def check_values(table: pd.DataFrame, locator: RowLocator) -> None:
    """Raise TableError if a value is outside its range."""
    weight = table["weight"].to_numpy()
    percentages = 2.0 <= weight[weight > 1].max(initial=0) <= 100
    rules = {
        "size": (table["size"] <= 0, "`size` must be above 0 parameters"),
        "weight": (
            (weight < 0) | (weight > 1),
            "`weight` must be in [0, 1]; divide by 100 if the column holds percentages"
            if percentages and not (weight < 0).any()
            else "`weight` must be in [0, 1]; give the task's share of the mixture",
        ),
        "value": (
            (table["metric"] == "loss") & (table["value"] <= 0),
            "a loss must be above 0 nats per token; give the cross-entropy, not the log-likelihood",
        ),
        "irreducible": (table["irreducible"] < 0, "`irreducible` must not be negative"),
        "encoder_size": (table["encoder_size"] < 0, "`encoder_size` must not be negative"),
        "decoder_size": (table["decoder_size"] < 0, "`decoder_size` must not be negative"),
        "tokens": (table["tokens"] < 0, "`tokens` must not be negative"),
        "role": (~table["role"].isin(ROLES), "`role` must be fit or held-out"),
    }
    for column, (wrong, rule) in rules.items():
        reject(np.asarray(wrong), table, locator, rule, table[column])


def check_mixtures(table: pd.DataFrame, locator: RowLocator) -> None:
    """Raise TableError if a mixture cannot be read, or disagrees with the row's weight."""
    codes, texts = pd.factorize(table["mixture"])
    weights = [_parse(text, table, locator) if text else None for text in texts]
    combinations = pd.DataFrame({"code": codes, "task": table["task"], "weight": table["weight"]})
    for code, task, weight in combinations.drop_duplicates().itertuples(index=False):
        known = weights[code]
        if known is not None and abs(known.get(task, 0.0) - weight) > _TOLERANCE:
            wrong = combinations.eq([code, task, weight]).all(axis=1).to_numpy()
            one, other = format_value(weight), format_value(known.get(task, 0.0))
            rule = f"`weight` of {task} is {one}, but `mixture` gives it {other}; they must agree"
            reject(wrong, table, locator, rule)


def _parse(text: str, table: pd.DataFrame, locator: RowLocator) -> dict[str, float]:
    try:
        return parse_mixture(text, "")
    except TableError:
        first = int(table["mixture"].eq(text).to_numpy().argmax())
        return parse_mixture(text, locator.name(table, first))


def check_run_weights(table: pd.DataFrame, locator: RowLocator) -> None:
    """Raise TableError if the weights of one run's tasks sum to more than 1.

    Raises:
        TableError: Naming the first such run.
    """
    model = ["run", "architecture", "size", "seed"]
    named = table[table["run"] != ""]
    shares = named.drop_duplicates([*model, "task", "weight"])
    totals = shares.groupby(model, sort=False, dropna=False)["weight"].transform("sum")
    wrong = (totals > 1 + _TOLERANCE).to_numpy()
    if not wrong.any():
        return
    first = shares.iloc[int(wrong.argmax())]
    run_rows = shares[
        (shares[model].eq(first[model]) | (shares[model].isna() & first[model].isna())).all(axis=1)
    ]
    listed = ", ".join(
        f"{task} {format_value(weight)}"
        for task, weight in zip(run_rows["task"], run_rows["weight"], strict=True)
    )
    positions = np.flatnonzero(table["row"].isin(run_rows["row"].iloc[:2]))
    raise TableError(
        f"{locator.name(table, *map(int, positions))}: the weights of run {first['run']} sum to "
        f"{run_rows['weight'].sum():g} ({listed}); give each trained model its own `run`, "
        f"and weights that sum to at most 1."
    )


def require_unique(table: pd.DataFrame, columns: Sequence[str], locator: RowLocator) -> None:
    """Raise TableError naming the first two rows that agree in all `columns`, and how many repeat others."""
    repeats = table.duplicated(list(columns)).to_numpy()
    if not repeats.any():
        return
    count, second = int(repeats.sum()), int(repeats.argmax())
    same = np.ones(len(table), dtype=bool)
    for column in columns:
        value = table[column].iloc[second]
        same &= (table[column].eq(value) | (table[column].isna() & pd.isna(value))).to_numpy()
    pair = locator.name(table, int(same.argmax()), second)
    remedy = "or tell repeated runs apart in the `seed` column."
    if count == 1:
        raise TableError(f"{pair}: the same measurement twice; remove one, {remedy}")
    kind = "cells" if locator.dims else "rows"
    raise TableError(
        f"{pair}: the same measurement twice, and {count:,} {kind} in all repeat earlier ones; remove them, "
        f"{remedy}"
    )


def validate(frame: pd.DataFrame, names: Sequence[str], locator: RowLocator) -> pd.DataFrame:
    """Return the table's known columns, typed and checked; absent optional columns are empty.

    Args:
        frame: A table with a `row` column of spreadsheet row numbers.
        names: All columns of the table, also those that are not read.
        locator: How messages name its rows.

    Raises:
        TableError: At the first thing that is wrong.
    """
    _require_columns(frame, names, locator.source)
    table = pd.DataFrame({"row": frame["row"]})
    for column in ("task", "metric"):
        table[column] = read_labels(frame, column, locator, required=True)
    for column in ("size", "weight", "value"):
        table[column] = read_numbers(frame, column, locator, required=True)
    for column in LABELS:
        table[column] = read_labels(frame, column, locator, required=False)
    for column in NUMBERS:
        table[column] = read_numbers(frame, column, locator, required=False)
    table["role"] = table["role"].replace("", "fit")
    table["metric"] = table["metric"].map(_spelling_of(table["metric"])).astype(object)
    check_values(table, locator)
    check_mixtures(table, locator)
    check_run_weights(table, locator)
    require_unique(table, ["run", "step", *CELL], locator)
    return table


def _spelling_of(metrics: pd.Series) -> dict[str, str]:
    """Return the spelling of each metric: `bleu` for `BLEU`, unknown ones as they are."""
    return {
        metric: metric.lower() if metric.lower() in KNOWN_METRICS else metric for metric in metrics.unique()
    }


def _require_columns(frame: pd.DataFrame, names: Sequence[str], source: str) -> None:
    repeated = [name for name in names if name and names.count(name) > 1]
    if repeated:
        count = names.count(repeated[0])
        raise TableError(f"{source} row 1: {count} columns are called `{repeated[0]}`; remove all but one.")
    missing = [column for column in REQUIRED if column not in names]
    if missing:
        close = closest(missing[0], names)
        hint = f" (is `{close}` meant?)" if close else ""
        raise TableError(
            f"{source} row 1: no column `{missing[0]}`{hint}; a run table needs {', '.join(REQUIRED)}, "
            f"but has {', '.join(filter(None, names)) or 'no columns'}."
        )
    if frame.empty:
        raise TableError(f"{source}: has a header but no rows; add a row for each measurement.")
