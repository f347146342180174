"""Checks of every run table before anything is computed from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.columns import (
    IMPLIED,
    LABELS,
    LIKENESS,
    NUMBERS,
    REQUIRED,
    closest,
    listed,
    read_labels,
    read_numbers,
)
from mnmt_laws.tables.metrics import losses_in_nats, read_metric
from mnmt_laws.tables.mixture import complete_mixtures
from mnmt_laws.tables.names import gathered_pattern, option, value_columns
from mnmt_laws.tables.repeats import tell_repeats_apart
from mnmt_laws.tables.row_location import RowLocator, reject

ROLES = ("fit", "held-out", "left-out")
_FLOPS_PER_TOKEN = 6
_ABOVE = 1.1  # irreducible over measured loss, which the chance of a test set does not reach


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


def validate(
    frame: pd.DataFrame,
    names: Sequence[str],
    locator: RowLocator,
    *,
    unread: pd.DataFrame,
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
        unread: The columns of the file that are not read, and `row`.
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
    table, repeats = tell_repeats_apart(table, unread, locator)
    return table, (*converted, *rounded, *computed, *repeats)


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
    """Raise TableError that names all absent columns at once, and what may hold them."""
    close = {name: _meant(name, names) for name in (*REQUIRED, *IMPLIED) if name not in names}
    missing = {name: meant for name, meant in close.items() if name in REQUIRED or meant}
    if missing:
        absent = " and no ".join(f"`{name}`{_hint(name, meant, names)}" for name, meant in missing.items())
        options = " ".join(option(name, meant or "COLUMN") for name, meant in missing.items())
        raise TableError(
            f"{source} row 1: no column {absent}; rename what holds it, or say {options}"
            f"{''.join(_other_ways(missing, frame, names))}; the table has {listed(names) or 'no columns'}."
        )
    if frame.empty:
        raise TableError(f"{source}: has a header but no rows; add a row for each measurement.")


def _hint(name: str, meant: str | None, names: Sequence[str]) -> str:
    several = value_columns(names)[:5] if name == "value" else []
    if len(several) > 1:
        return f" (is one of `{'`, `'.join(several)}` meant?)"
    return f" (is `{meant}` meant?)" if meant else ""


def _other_ways(missing: Iterable[str], frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return what helps beside the name of a column: a `*`, a number, a second table."""
    ways = []
    measured = value_columns(names)
    pattern = gathered_pattern(measured) if "value" in missing else None
    if pattern is not None:
        ways.append(f", or gather the columns of all tasks: {option('value', pattern)}")
    if "size" in missing and "run" in names:
        runs = listed(frame["run"].astype(str).unique(), most=5)
        ways.append(
            f", or give it by a second table, --runs runs.csv, with columns run,size and the runs {runs}"
        )
    elif "size" in missing:
        ways.append(", or --column size=1e6 if all models have one size")
    return ways


def _meant(name: str, names: Sequence[str]) -> str | None:
    """Return the column of the table that probably holds an absent one."""
    if name == "value" and (metrics := value_columns(names)):
        exact = [column for column in metrics if read_metric(column).text == column.casefold()]  # type: ignore[union-attr]
        return [*exact, *metrics][0]
    return closest(name, names, cutoff=0.6 if name in REQUIRED else LIKENESS)
