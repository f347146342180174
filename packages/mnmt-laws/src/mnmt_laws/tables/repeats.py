"""Rows that measure the same: exact repeats, replicates without a seed, and mistakes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.lengths import ROUNDING
from mnmt_laws.tables.names import read_shares
from mnmt_laws.tables.row_location import RowLocator

CURVE = (
    "run", "architecture", "size", "encoder_size", "decoder_size", "mixture", "task", "weight",
    "unique_tokens", "testset", "metric", "seed",
)  # fmt: skip
"""Columns in which the measurements of one run's learning curve agree."""

CELL = (*CURVE[1:], "step", "tokens")
"""Columns in which two measurements must differ somewhere; repeated runs differ in their seeds."""

_MODEL = list(CURVE[1:-1])


def tell_repeats_apart(
    table: pd.DataFrame, unread: pd.DataFrame, locator: RowLocator
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a table whose rows differ in their run, seed or length, and a line for each assumption.

    Rows that repeat another, value included, are read once. Without seeds, other rows of one cell are
    replicates, unless a column that is not read tells them apart.

    Args:
        table: A run table.
        unread: The columns of the file that are not read, and `row`.
        locator: How messages name the rows.

    Raises:
        TableError: If a run, or a seed, has two values of one cell, or an unread column differs in them.
    """
    again = table.duplicated(["run", *CELL, "value"]) | _repeats_last(table)
    table = table[~again].reset_index(drop=True)
    notes = (
        (f"{int(again.sum()):,} rows repeat others, value included, and are left out.",)
        if again.any()
        else ()
    )
    repeated = table.duplicated([*CELL], keep=False)
    if table["seed"].notna().any() or not repeated.any():
        require_unique(table, ["run", *CELL], locator)
        return table, notes
    require_unique(table[table["run"] != ""], ["run", *CELL], locator)
    _check_unread(table[repeated], unread, locator)
    count = int(table.groupby([*CELL], dropna=False).size().max())
    line = f"rows of one model and length, up to {count}, are replicates: they are numbered as seeds."
    return table.assign(seed=_seeds(table)), (*notes, line)


def _repeats_last(table: pd.DataFrame) -> pd.Series:
    """Return which rows without a run have the value of a row that follows within 2% of their length."""
    length = table["tokens"].fillna(table["step"])
    ordered = table.assign(length=length).sort_values("length", kind="stable")
    following = ordered.groupby([*CURVE], dropna=False)[["length", "value"]].shift(-1)
    near = following["length"].gt(ordered["length"]) & following["length"].le(
        (1 + ROUNDING) * ordered["length"]
    )
    same: pd.Series = near & following["value"].eq(ordered["value"]) & ordered["run"].eq("")
    return same.reindex(table.index)


def _seeds(table: pd.DataFrame) -> pd.Series:
    """Return numbers from 1: of the runs of each model, or of the rows of each cell."""
    by_run = table.groupby(_MODEL, dropna=False)["run"].transform(lambda runs: pd.factorize(runs)[0] + 1)
    by_row = table.groupby([*CELL], dropna=False).cumcount() + 1
    return by_run.where(table["run"] != "", by_row).astype(float)


def _check_unread(repeated: pd.DataFrame, unread: pd.DataFrame, locator: RowLocator) -> None:
    """Raise TableError if a column that is not read, and has few values, tells rows of a cell apart."""
    groups = repeated.groupby([*CELL], dropna=False, sort=False)
    joined = repeated[["row"]].merge(unread, on="row", how="left").drop(columns="row")
    joined, unread = joined.set_axis(groups.ngroup().to_numpy()), unread.drop(columns="row")
    few = [str(name) for name in unread if 2 * unread[name].nunique() <= len(unread)]
    by_cell = joined[few].groupby(level=0).nunique(dropna=False)
    apart = [name for name in few if by_cell[name].gt(1).any()]
    if not apart:
        return
    pair = locator.name(groups.head(2), 0, 1)
    options = _likely_roles(repeated, joined, apart)
    if not options:
        raise TableError(
            f"{pair}: the same model and length but for `{apart[0]}`, which is not read; name what it holds, "
            f"as in --column mixture={apart[0]}, or --column seed={apart[0]} for replicates."
        )
    columns = " and no ".join(f"`{role}`" for role in options)
    named = " ".join(f"--column {role}={name}" for role, name in options.items())
    raise TableError(
        f"{pair}: one model and length, for there is no column {columns}; not read: "
        f"{', '.join(map(str, unread))}; name them, as in {named}."
    )


def _likely_roles(table: pd.DataFrame, unread: pd.DataFrame, apart: Sequence[str]) -> dict[str, str]:
    """Return the columns of texts and of shares that may be the task and the weight which a table lacks.

    The weights of a cell, that is of all tasks of a model or of some models, have a whole sum above 0.
    """
    numbers = {str(name): read_shares(unread[name]) for name in unread}
    shares = {name: s for name, s in numbers.items() if s is not None and s.max() <= 1}
    sums = pd.DataFrame(shares, index=unread.index).groupby(level=0).sum()
    whole = sums.columns[(sums.gt(0) & (sums - sums.round()).abs().le(ROUNDING)).all()]
    texts = [name for name in apart if numbers[name] is None]
    absent = {"task": table["task"].eq("all").all(), "weight": table["weight"].eq(1).all()}
    likely = {"task": texts, "weight": [*whole]}
    return {role: names[0] for role, names in likely.items() if absent[role] and names} if texts else {}


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
    raise TableError(
        f"{pair}: the same measurement twice{more}; remove {what}, or tell repeated runs apart in the `seed` "
        f"column."
    )
