"""Checks of every run table before anything is computed from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.columns import (
    IMPLIED,
    LABELS,
    NUMBERS,
    REQUIRED,
    closest,
    read_labels,
    read_numbers,
)
from mnmt_laws.tables.metrics import losses_in_nats, read_metric
from mnmt_laws.tables.mixture import complete_mixtures
from mnmt_laws.tables.row_location import RowLocator, reject

ROLES = ("fit", "held-out", "left-out")
CURVE = (
    "run", "architecture", "size", "encoder_size", "decoder_size", "mixture", "task", "weight",
    "unique_tokens", "testset", "metric", "seed",
)  # fmt: skip
"""Columns in which the measurements of one run's learning curve agree."""

CELL = (*CURVE[1:], "step", "tokens")
"""Columns in which two measurements must differ somewhere; repeated runs differ in their seeds."""

_FLOPS_PER_TOKEN = 6
_ABOVE = 1.1  # irreducible over measured loss, which the chance of a test set does not reach
_NAMED = 5


def check_values(table: pd.DataFrame, locator: RowLocator, *, rising: bool | None = None) -> None:
    """Raise TableError if a value is outside its range; where values are `rising`, they are no losses."""
    weight = table["weight"].to_numpy()
    percentages = 2.0 <= weight[weight > 1].max(initial=0) <= 100
    metrics = {name: read_metric(name) for name in table["metric"].unique()}
    losses = [name for name, metric in metrics.items() if metric and metric.is_loss and not rising]
    rules = {
        "size": (table["size"] <= 0, "`size` must be above 0 parameters"),
        "weight": (
            (weight < 0) | (weight > 1),
            "`weight` must be in [0, 1]; say --column weight=weight*0.01 if the column holds percentages"
            if percentages and not (weight < 0).any()
            else "`weight` must be in [0, 1]; give the task's share of the mixture",
        ),
        "unique_tokens": (table["unique_tokens"] <= 0, "`unique_tokens` must be above 0"),
        "value": (
            table["metric"].isin(losses) & (table["value"] <= 0),
            "a loss must be above 0 nats per token; give the cross-entropy, not the log-likelihood",
        ),
        "irreducible": (
            (table["irreducible"] < 0)
            | (table["metric"].isin(losses) & (table["irreducible"] > _ABOVE * table["value"])),
            "`irreducible` must be at least 0 and no more than the loss that was measured",
        ),
        "encoder_size": (table["encoder_size"] < 0, "`encoder_size` must not be negative"),
        "decoder_size": (table["decoder_size"] < 0, "`decoder_size` must not be negative"),
        "tokens": (table["tokens"] < 0, "`tokens` must not be negative"),
        "role": (~table["role"].isin(ROLES), "`role` must be fit, held-out or left-out"),
    }
    for column, (wrong, rule) in rules.items():
        reject(np.asarray(wrong), table, locator, rule, table[column])
    for name, metric in metrics.items():
        if metric is not None and metric.ceiling is not None:
            rows = table["metric"].eq(name).to_numpy()
            # sacreBLEU's perfect BLEU is 100.00000000000004.
            wrong = rows & ~table["value"].between(0, metric.ceiling * (1 + 1e-9)).to_numpy()
            rule = f"{name} must be in [0, {metric.ceiling:g}]; correct the value, or the row's `metric`"
            reject(wrong, table, locator, rule, table["value"])


def require_unique(table: pd.DataFrame, columns: Sequence[str], locator: RowLocator) -> None:
    """Raise TableError for rows that agree in all `columns`, with the first two and the number of repeats."""
    repeats = table.duplicated(list(columns)).to_numpy()
    if not repeats.any():
        return
    count, second = int(repeats.sum()), int(repeats.argmax())
    same = np.ones(len(table), dtype=bool)
    for column in columns:
        value = table[column].iloc[second]
        same &= (table[column].eq(value) | (table[column].isna() & pd.isna(value))).to_numpy()
    pair = locator.name(table, int(same.argmax()), second)
    more = f", and {count:,} rows in all repeat earlier ones" if count > 1 else ""
    what = "one" if count == 1 else "them"
    absent = _absent(table)
    if absent[:-1]:
        raise TableError(
            f"{pair}: the same measurement twice{more}, as no {', '.join(absent[:-1])} or {absent[-1]} tells "
            f"them apart; name the column that does, as in --column {absent[0]}=COLUMN, or remove {what}."
        )
    raise TableError(
        f"{pair}: the same measurement twice{more}; remove {what}, or tell repeated runs apart in the `seed` "
        f"column."
    )


def _absent(table: pd.DataFrame) -> list[str]:
    """Return the columns that may tell measurements apart, but are empty, or hold no weight but 1."""
    weighed = table["weight"].ne(1).any() or table["mixture"].ne("").any()
    missing = [] if weighed else ["weight"]
    return missing + [name for name in ("tokens", "step", "seed") if table[name].isna().all()]


def validate(
    frame: pd.DataFrame,
    names: Sequence[str],
    locator: RowLocator,
    *,
    metric: str = "loss",
    rising: bool | None = None,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table's known columns, typed and checked, and notes on inferred values.

    Absent optional columns are empty. An absent `task` is `all`, an absent `metric` is `metric`, an absent
    `weight` is the mixture's, and absent `tokens` are flops / (6 size) where there are flops.

    Args:
        frame: A table with a `row` column of spreadsheet row numbers.
        names: All columns of the table, unread ones included.
        locator: How messages name its rows.
        metric: The metric of a table without a column `metric`.
        rising: Whether higher values are better, for a metric whose name does not tell.

    Raises:
        TableError: At the first thing that is wrong.
    """
    _require_columns(frame, names, locator.source)
    table = pd.DataFrame({"row": frame["row"]})
    for column, default in {"task": "all", "metric": metric}.items():
        known = frame if column in frame.columns else frame.assign(**{column: default})
        table[column] = read_labels(known, column, locator, required=True)
    for column in ("size", "weight", "value"):
        table[column] = read_numbers(frame, column, locator, required=column != "weight")
    for column in LABELS:
        table[column] = read_labels(frame, column, locator, required=False)
    for column in NUMBERS:
        table[column] = read_numbers(frame, column, locator, required=False)
    table["role"] = table["role"].replace("", "fit")
    table["metric"] = table["metric"].map(_spelling_of(table["metric"])).astype(object)
    table, converted = losses_in_nats(table, locator)
    check_values(table, locator, rising=rising)
    table, rounded = complete_mixtures(table, locator, has_weights="weight" in frame.columns)
    table, computed = _complete_tokens(table)
    require_unique(table, ["run", *CELL], locator)
    return table, (*converted, *rounded, *computed)


def _complete_tokens(table: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table with tokens computed from FLOPs where it has these and no tokens, and a warning."""
    if table["tokens"].notna().any() or table["flops"].isna().all():
        return table, ()
    tokens = table["flops"] / (_FLOPS_PER_TOKEN * table["size"])
    return table.assign(tokens=tokens), (
        "`tokens` are computed as flops / (6 size), for there is no such column.",
    )


def _spelling_of(metrics: pd.Series) -> dict[str, str]:
    """Return the spelling of each metric: `bleu` for `BLEU`, unknown ones unchanged."""
    return {metric: metric.lower() if read_metric(metric) else metric for metric in metrics.unique()}


def require_distinct(names: Sequence[str], source: str) -> None:
    """Raise TableError if a file has two columns of one name."""
    repeated = [name for name in names if name and names.count(name) > 1]
    if repeated:
        count = names.count(repeated[0])
        raise TableError(f"{source} row 1: {count} columns are called `{repeated[0]}`; remove all but one.")


def _require_columns(frame: pd.DataFrame, names: Sequence[str], source: str) -> None:
    close = {name: _meant(name, names) for name in (*REQUIRED, *IMPLIED) if name not in names}
    missing = [name for name, meant in close.items() if name in REQUIRED or meant]
    if missing:
        name, meant = missing[0], close[missing[0]]
        hint = f" (is `{meant}` meant?)" if meant else ""
        if not meant and "run" in names:
            raise TableError(
                f"{source} row 1: no column `{name}`; give one, or a second table with a row for each run: "
                f"--runs runs.csv, with the columns run,{name} and the runs {_listed(frame['run'])}."
            )
        option = f"{name}={meant or 'COLUMN'}"
        option = f'"{option}"' if " " in option else option
        raise TableError(
            f"{source} row 1: no column `{name}`{hint}; rename the one that holds it, or name it with "
            f"--column {option}: the table has "
            f"{', '.join(filter(None, names)) or 'no columns'}."
        )
    if frame.empty:
        raise TableError(f"{source}: has a header but no rows; add a row for each measurement.")


def _listed(runs: pd.Series) -> str:
    names = [str(name) for name in runs.unique()]
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _meant(name: str, names: Sequence[str]) -> str | None:
    """Return the column of the table that probably holds an absent one."""
    if name == "value":
        metrics = {column: metric for column in names if (metric := read_metric(column))}
        named = [column for column, metric in metrics.items() if metric.text == column.casefold()]
        tested = [column for column in metrics if "train" not in column.casefold()]
        if metrics:
            return next(iter([*named, *tested, *metrics]))
    return closest(name, names, cutoff=0.6 if name in REQUIRED else 0.8)
