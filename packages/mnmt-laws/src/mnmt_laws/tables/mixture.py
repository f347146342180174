"""Training mixtures as a run table writes them, `en-de:0.3,en-zh:0.7`, and the column that holds them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.columns import LIKENESS, closest
from mnmt_laws.tables.row_location import RowLocator, format_value, reject

ROUNDING = 0.01
"""Tolerance of the sum of a mixture's weights: 17 weights of three decimals may be off by 0.0085."""

_EXACT = 1e-6
_MODEL = ["run", "architecture", "size", "seed"]


def format_mixture(weights: Mapping[str, float]) -> str:
    """Return `{"en-de": 0.3, "en-zh": 0.7}` as `en-de:0.3,en-zh:0.7`."""
    return ",".join(f"{task}:{float(weight)!r}" for task, weight in weights.items())


def parse_mixture(text: str, where: str) -> dict[str, float]:
    """Return the weight of each task.

    Args:
        text: `TASK:WEIGHT` items between commas.
        where: File and row, for messages.

    Raises:
        TableError: If an item cannot be read, a task is named twice, a weight is negative, or the weights
            do not sum to 1.
    """
    weights = parse_weights(text, where)
    total = math.fsum(weights.values())
    if not abs(total - 1.0) <= _EXACT:
        raise TableError(f"{where}: the weights of `mixture` must sum to 1, but {text!r} sums to {total:g}.")
    return weights


def parse_weights(text: str, where: str) -> dict[str, float]:
    """Return the weight of each task of a mixture, without a check of their sum.

    Raises:
        TableError: If an item cannot be read, a task is named twice, or a weight is negative.
    """
    items = [_parse_item(item, text, where) for item in text.split(",")]
    weights = dict(items)
    if len(weights) < len(items):
        raise TableError(f"{where}: `mixture` must name a task once, but is {text!r}.")
    if min(weights.values()) < 0:
        raise TableError(f"{where}: the weights of `mixture` must not be negative, but are in {text!r}.")
    return weights


def mixture_weights(rows: pd.DataFrame, tasks: Sequence[str], source: str) -> pd.DataFrame:
    """Return the weights of all sources in the mixture of every row.

    Weights are read from `mixture`. Where that is empty, a row at weight 1 was trained only on its task, and
    of two tasks the other one has weight 1 - p.

    Args:
        rows: Rows of observations.
        tasks: All tasks of the table; sources that only mixtures name follow them.
        source: Name of the table, for messages.

    Returns:
        One row for each of `rows`, with its index, and one column for each source, a task to which some
        mixture of these rows gives weight.

    Raises:
        TableError: If a mixture is neither given nor follows from the weight.
    """
    codes, texts = pd.factorize(rows["mixture"])
    parsed = [parse_mixture(text, source) if text else {} for text in texts]
    named = sorted({*rows["task"].unique(), *(task for weights in parsed for task in weights)} - {*tasks})
    names = [*tasks, *named]
    known = np.zeros((len(parsed), len(names)))
    place = {name: column for column, name in enumerate(names)}
    for number, weights in enumerate(parsed):
        known[number, [place[name] for name in weights]] = list(weights.values())
    table = known[codes]
    stated = np.array([bool(text) for text in texts], dtype=bool)[codes]
    if not stated.all():
        table[~stated] = _from_task_weight(rows[~stated], names, source)
    trained = (table > 0).any(axis=0)
    return pd.DataFrame(table[:, trained], index=rows.index, columns=pd.Index(names)[trained])


def _from_task_weight(
    rows: pd.DataFrame, names: Sequence[str], source: str
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return (rows, tasks) weights of rows that state only the weight of their task."""
    task_weight = rows["weight"].to_numpy(float)
    open_rows = task_weight != 1
    if len(names) != 2 and open_rows.any():
        row = rows["row"].iloc[int(open_rows.argmax())]
        raise TableError(
            f"{source} row {row}: the weights of the other tasks are not known; add a `mixture` column, "
            f"which reads TASK:WEIGHT,TASK:WEIGHT."
        )
    column = pd.Index(names).get_indexer(pd.Index(rows["task"]))
    weights = np.zeros((len(rows), len(names)))
    if len(names) == 2:
        weights += (1 - task_weight)[:, None]
    weights[np.arange(len(rows)), column] = task_weight
    return weights


def _parse_item(item: str, text: str, where: str) -> tuple[str, float]:
    task, colon, weight = item.strip().rpartition(":")
    try:
        if colon and task:
            return task.strip(), float(weight)
    except ValueError:
        pass
    raise TableError(f"{where}: `mixture` must read TASK:WEIGHT,TASK:WEIGHT, but is {text!r}.")


def complete_mixtures(
    table: pd.DataFrame, locator: RowLocator, *, has_weights: bool
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table with mixtures that sum to 1 and a weight in every row, and warnings of changes.

    A mixture that sums to 1 up to `ROUNDING` is divided by its sum. An empty weight is its task's in the
    mixture, 0 where that does not name it; it is 1 if the table has no weights and no mixtures at all.
    Among more than two tasks, the mixture of a run that has a row for each task is read from their weights.

    Raises:
        TableError: If a mixture cannot be read or does not sum to 1, a weight disagrees with it or is absent,
            or the weights of a run sum to more than 1.
    """
    table = table.assign(mixture=_mixtures_of_runs(table))
    codes, texts = pd.factorize(table["mixture"])
    stated = [_parse(text, table, locator) if text else {} for text in texts]
    totals = np.array([math.fsum(weights.values()) if weights else 1.0 for weights in stated])
    known = totals[[bool(weights) for weights in stated]]
    percent = bool(len(known)) and bool((np.abs(known - 100) <= 100 * ROUNDING).all())
    if percent:
        stated = [{task: weight / 100 for task, weight in weights.items()} for weights in stated]
        texts, totals = pd.Index([format_mixture(weights) for weights in stated]), totals / 100
    _check_totals(totals, codes, table, locator)
    exact = np.abs(totals - 1) <= _EXACT
    scaled = [
        weights if same else {task: weight / total for task, weight in weights.items()}
        for weights, total, same in zip(stated, totals, exact, strict=True)
    ]
    of_task = _weights_of_tasks(stated, codes, table["task"])
    _check_agreement(of_task, table, locator)
    normal = of_task / totals[codes]
    keep = table["weight"].notna().to_numpy() & (exact[codes] | np.isnan(of_task))
    weight = np.where(keep, table["weight"], normal)
    if not has_weights and not any(stated):
        weight = np.where(np.isnan(weight), 1.0, weight)
    missing = "`mixture` is empty; give it in every row"
    if has_weights:
        missing = "`weight` is empty or NaN; give the task's share, or the `mixture`"
    reject(np.isnan(weight), table, locator, missing)
    if not weight.any():
        sources = ", ".join(dict.fromkeys(name for weights in stated for name in weights)) or "none"
        tasks = ", ".join(f"`{task}`" for task in table["task"].unique())
        raise TableError(
            f"{locator.source}: every weight is 0, for task {tasks} is not in the mixture of {sources}; "
            f"name the tasks as the mixture does, as in --column task=COLUMN."
        )
    rewritten = [
        text if same else format_mixture(w) for text, w, same in zip(texts, scaled, exact, strict=True)
    ]
    table = table.assign(weight=weight, mixture=np.array(rewritten, dtype=object)[codes])
    check_run_weights(table, locator, has_weights=has_weights)
    percentages = ("the weights of `mixture` sum to 100 and are read as percentages.",) if percent else ()
    return table, (*percentages, *_rounding_warning(totals[~exact]))


def _rounding_warning(totals: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[str, ...]:
    if not len(totals):
        return ()
    mixtures = "1 mixture sums" if len(totals) == 1 else f"{len(totals)} mixtures sum"
    return (
        f"{mixtures} to 1 only up to rounding ({totals.min():.4g} to {totals.max():.4g}); the weights are "
        f"divided by their sum.",
    )


def _parse(text: str, table: pd.DataFrame, locator: RowLocator) -> dict[str, float]:
    try:
        return parse_weights(text, "")
    except TableError:
        first = int(table["mixture"].eq(text).to_numpy().argmax())
        return parse_weights(text, locator.name(table, first))


def _check_totals(
    totals: np.ndarray[tuple[int], np.dtype[np.float64]],
    codes: np.ndarray[tuple[int], np.dtype[np.intp]],
    table: pd.DataFrame,
    locator: RowLocator,
) -> None:
    wrong = ~(np.abs(totals - 1) <= ROUNDING)
    if not wrong.any():
        return
    first = int(wrong[codes].argmax())
    total, text = totals[codes[first]], table["mixture"].iloc[first]
    raise TableError(
        f"{locator.name(table, first)}: the weights of `mixture` must sum to 1, but {text!r} sums to "
        f"{total:g}; they may be off by {ROUNDING:g}, for rounding."
    )


def _weights_of_tasks(
    mixtures: list[dict[str, float]], codes: np.ndarray[tuple[int], np.dtype[np.intp]], tasks: pd.Series
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return (n,) the weight that each row's mixture gives to its task; NaN without a mixture."""
    task_codes, names = pd.factorize(tasks)
    weights = np.array(
        [[known.get(name, 0.0) if known else np.nan for name in names] for known in mixtures]
    ).reshape(len(mixtures), len(names))
    return np.asarray(weights[codes, task_codes])


def _check_agreement(
    of_task: np.ndarray[tuple[int], np.dtype[np.float64]], table: pd.DataFrame, locator: RowLocator
) -> None:
    weight = table["weight"].to_numpy(float)
    wrong = np.abs(of_task - weight) > _EXACT
    if wrong.any():
        first = int(wrong.argmax())
        same = wrong & table["mixture"].eq(table["mixture"].iloc[first]).to_numpy()
        one, other, task = (
            format_value(weight[first]),
            format_value(of_task[first]),
            table["task"].iloc[first],
        )
        names = {*parse_weights(table["mixture"].iloc[first], "")} - {*table["task"]}
        meant = closest(task, names, cutoff=LIKENESS)
        hint = f" (does `{meant}` in `mixture` mean `{task}`?)" if meant else ""
        rule = f"`weight` of {task} is {one}, but `mixture` gives it {other}; they must agree{hint}"
        reject(same & table["task"].eq(task).to_numpy(), table, locator, rule)


def _mixtures_of_runs(table: pd.DataFrame) -> pd.Series:
    """Return the mixtures; fill empty ones from the weights of the run's tasks where these sum to 1."""
    mixture = table["mixture"]
    unknown = mixture.eq("") & table["run"].ne("") & table["weight"].notna()
    if table["task"].nunique() <= 2 or not unknown.any():
        return mixture
    shares = table[unknown].drop_duplicates([*_MODEL, "task", "weight"])
    groups = shares.groupby(_MODEL, sort=False, dropna=False)
    once = ~shares.duplicated([*_MODEL, "task"], keep=False).groupby(groups.ngroup()).transform("any")
    complete = once & (groups["weight"].transform("sum") - 1).abs().le(ROUNDING) & shares["weight"].gt(0)
    texts = {
        number: format_mixture(dict(zip(rows["task"], rows["weight"], strict=True)))
        for number, rows in shares[complete].sort_values("task").groupby(groups.ngroup()[complete])
    }
    numbers = table[unknown].groupby(_MODEL, sort=False, dropna=False).ngroup()
    return mixture.where(~unknown, numbers.map(texts).fillna("").reindex(table.index, fill_value=""))


def check_run_weights(table: pd.DataFrame, locator: RowLocator, *, has_weights: bool = True) -> None:
    """Check that the weights of one run's tasks sum to at most 1.

    Raises:
        TableError: Naming the first run where they do not, or the column of weights if there is none.
    """
    named = table[table["run"] != ""]
    shares = named.drop_duplicates([*_MODEL, "task", "weight"])
    totals = shares.groupby(_MODEL, sort=False, dropna=False)["weight"].transform("sum")
    unstated = shares["mixture"].eq("")
    wrong = (totals > 1 + np.where(unstated, ROUNDING, _EXACT)).to_numpy()
    if table["task"].nunique() == 2:  # the weight of one task would be taken for what the other leaves
        both = shares.groupby(_MODEL, sort=False, dropna=False)["task"].transform("nunique").eq(2)
        wrong = wrong | (unstated & both & (totals < 1 - ROUNDING)).to_numpy()
    if not wrong.any():
        return
    first = shares.iloc[int(wrong.argmax())]
    same = shares[_MODEL].eq(first[_MODEL]) | (shares[_MODEL].isna() & first[_MODEL].isna())
    run_rows = shares[same.all(axis=1)]
    listed = ", ".join(
        f"{task} {format_value(weight)}"
        for task, weight in zip(run_rows["task"], run_rows["weight"], strict=True)
    )
    total = run_rows["weight"].sum()
    positions = [int(place) for place in np.flatnonzero(table.index.isin(run_rows.index[:2]))]
    if not has_weights and run_rows["mixture"].eq("").all():
        raise TableError(
            f"{locator.name(table, *positions)}: run {first['run']} has several tasks, but the table has no "
            f"column `weight` or `mixture`; name the one that holds the shares, as in --column weight=COLUMN."
        )
    raise TableError(
        f"{locator.name(table, *positions)}: the weights of run {first['run']} sum to "
        f"{total:g} ({listed}); give each trained model its own `run`, and "
        f"{'weights that sum to at most 1' if total > 1 else 'the rest of its sources in a `mixture`'}."
    )
