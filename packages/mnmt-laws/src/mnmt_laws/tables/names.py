"""What the columns of a table hold, by their names and numbers: aliases, units, and columns to gather."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.column_map import ColumnMap, starred_columns
from mnmt_laws.tables.columns import KINDS
from mnmt_laws.tables.metrics import read_metric
from mnmt_laws.tables.mixture import ROUNDING
from mnmt_laws.tables.numbers import has_suffixes
from mnmt_laws.tables.row_location import RowLocator

_ALIASES = {
    "size": "params param parameters n_params num_params n_parameters num_parameters model_size model_params "
    "total_params non_embedding_params",
    "tokens": "n_tokens num_tokens train_tokens training_tokens tokens_seen total_tokens",
    "flops": "flop compute train_flops training_flop training_flops total_flops",
    "task": "lang language domain pair lang_pair language_pair direction",
    "weight": "ratio proportion share fraction task_weight sampling_weight mixture_weight",
    "mixture": "mix mixing",
    "step": "steps iter iters iteration iterations update updates global_step",
    "seed": "seeds random_seed replicate",
    "run": "run_id run_name",
    "testset": "test_set eval_set",
    "architecture": "arch",
}
_SYMBOLS = {"N": "size", "D": "tokens", "C": "flops", "p": "weight"}
_ROLES = {alias: role for role, text in _ALIASES.items() for alias in text.split()} | {n: n for n in KINDS}
_UNIT = re.compile(r"(.+?)[\s_]+[(\[]?([kmbgt])(?:r?illions?)?[)\]]?", re.IGNORECASE)
_POWERS = {"k": "1e3", "m": "1e6", "b": "1e9", "g": "1e9", "t": "1e12"}
_BREAK = re.compile(r"[\s_/.:|]+")  # no hyphen, which joins the languages of a pair
_SPLITS = {"train", "training", "valid", "val", "validation", "dev", "test", "eval"}


def complete_map(
    mapping: ColumnMap, frame: pd.DataFrame, locator: RowLocator
) -> tuple[ColumnMap, tuple[str, ...]]:
    """Return a mapping with what the names of a file tell beyond it, and a line that says what was taken.

    Columns whose weights sum to 1 in every row are a mixture. A single column of a metric's name holds the
    values; several are gathered if they are of the mixture's sources.

    Raises:
        TableError: If two columns may hold the same.
    """
    mapping = _of_roles(mapping, list(frame.columns))
    named = {*mapping.columns} | {name for name in frame.columns if name in KINDS}
    free = [name for name in frame.columns if name and name not in KINDS and not mapping.kinds([name])]
    columns = _by_alias(named, frame[free], locator)
    free = [name for name in free if name not in columns.values() and not _scaled_from(name, columns)]
    if not {"mixture", "weight"} & {*named, *columns}:
        if pattern := _weights(frame, free):
            columns["mixture"] = pattern
        else:
            _refuse_other_sums(frame, free, locator)
    known = ColumnMap(columns={**mapping.columns, **columns})
    sources = known.starred("mixture", list(frame.columns))
    if "value" not in {*named, *columns}:
        tested = [name for name in free if name not in sources.values()]
        columns |= _value(tested, sources, {"task"} & {*named, *columns})
        if "value" not in columns and not value_columns(tested):
            _ask_for_values(tested, sources, locator)
    if not columns:
        return mapping, ()
    complete = ColumnMap(columns={**mapping.columns, **columns})
    taken = ", ".join(_taken(role, complete, frame) for role in columns)
    return complete, (f"taken from other columns: {taken}.",)


def _taken(role: str, mapping: ColumnMap, frame: pd.DataFrame) -> str:
    gathered = len(mapping.starred(role, list(frame.columns)))
    return f"{role} from `{mapping.columns[role]}`" + (f" ({gathered} columns)" if gathered else "")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()).strip("_")


def _role(name: str) -> tuple[str | None, str]:
    """Return what a name says that a column holds, and its factor: `Params (M)` is `size`, times 1e6."""
    if role := _SYMBOLS.get(name) or _ROLES.get(_plain(name)):
        return role, ""
    if match := _UNIT.fullmatch(name):
        role = _SYMBOLS.get(match[1]) or _ROLES.get(_plain(match[1]))
        if role is not None and KINDS[role] == "count":
            return role, f"*{_POWERS[match[2].lower()]}"
    return None, ""


def _of_roles(mapping: ColumnMap, names: Sequence[str]) -> ColumnMap:
    """Return a mapping that names the file's columns also where it names what they hold: `tokens*1e9`."""
    columns = dict(mapping.columns)
    for role, text in columns.items():
        held = mapping.file_column(role)
        aliases = [name for name in names if held not in names and _role(name)[0] == held]
        if len(aliases) == 1:
            columns[role] = text.replace(held, aliases[0], 1)
    return ColumnMap(columns=columns)


def _by_alias(named: set[str], free: pd.DataFrame, locator: RowLocator) -> dict[str, str]:
    columns: dict[str, str] = {}
    for name in free.columns:
        role, factor = _role(name)
        if factor and has_suffixes(free[name]):
            factor = ""
        if role is None or role in named:
            continue
        if role in columns:
            other = columns[role].partition("*")[0]
            raise TableError(
                f"{locator.source} row 1: `{other}` and `{name}` may both hold `{role}`; choose one, as in "
                f"{option(role, name + factor)}."
            )
        columns[role] = name + factor
    return columns


def _scaled_from(name: str, columns: Mapping[str, str]) -> bool:
    return any(text.startswith(f"{name}*") for text in columns.values())


def _weights(frame: pd.DataFrame, names: Sequence[str]) -> str | None:
    """Return the longest pattern of columns whose numbers sum to 1, or to 100, in every row."""
    shares = {name: numbers for name in names if (numbers := read_shares(frame[name])) is not None}
    for pattern in sorted({pattern for name in shares for pattern in _patterns(name)}, key=len, reverse=True):
        group = [shares[name] for name in starred_columns(pattern, shares).values()]
        if len(group) > 1 and sums_to_one(np.array(group)):
            return pattern
    return None


def _refuse_other_sums(frame: pd.DataFrame, free: Sequence[str], locator: RowLocator) -> None:
    """Raise TableError if columns are a mixture in most rows, or named like the tasks, but not in all."""
    measured = value_columns(frame.columns)
    tasks = {*starred_columns(gathered_pattern(measured) or "", measured)}
    shares = {
        name: s for name in free if name not in measured and (s := read_shares(frame[name])) is not None
    }
    for pattern in dict.fromkeys(pattern for name in shares for pattern in _patterns(name)):
        group = starred_columns(pattern, shares)
        weights = np.array([shares[name] for name in group.values()])
        whole = _whole(weights, of_tasks={*group} == tasks) if len(group) > 1 else None
        totals = weights.sum(axis=0)
        if whole is None or not (weights.max(axis=0) < whole).any():
            continue
        row = int((~(np.abs(totals / whole - 1) <= ROUNDING)).argmax())
        empty = [name for name, each in group.items() if np.isnan(shares[each][row])]
        what = f"the columns `{pattern}` sum to {totals[row]:g}, not {whole}"
        if empty:
            what = f"`{group[empty[0]]}` is empty"
        raise TableError(
            f"{locator.source} row {frame.index[row] + 2}: {what}; "
            "give the weight of every source of the mixture."
        )


def _whole(weights: np.ndarray[tuple[int, int], np.dtype[np.float64]], *, of_tasks: bool) -> int | None:
    """Return 1 or 100 if weights sum to it in most rows, and 1 for those of all tasks within [0, 1]."""
    for whole in (1, 100):
        right = np.abs(weights.sum(axis=0) / whole - 1) <= ROUNDING
        if 2 * right.sum() > len(right):
            return whole
    return 1 if of_tasks and np.nan_to_num(weights).max(initial=0.0) <= 1 else None


def sums_to_one(weights: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> bool:
    """Return whether weights (sources, rows) sum to 1, or to 100, in all rows up to rounding.

    Columns of which one is the whole in every row are choices, such as `use_adam` and `use_sgd`.
    """
    totals, most = np.nansum(weights, axis=0), weights.max(axis=0, initial=0.0)
    return any(
        bool((np.abs(totals / whole - 1) <= ROUNDING).all() and (most < (1 - ROUNDING) * whole).any())
        for whole in (1, 100)
    )


def read_shares(values: pd.Series) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """Return a column as numbers in [0, 100]; None if it is another."""
    texts = values.map(
        lambda cell: cell.strip().rstrip("% ").replace(",", ".") if isinstance(cell, str) else cell
    )
    numbers = pd.to_numeric(texts, errors="coerce")
    if (numbers.isna() & texts.notna()).any() or not numbers.dropna().between(0, 100).all():
        return None
    return numbers.to_numpy(float)


def _patterns(name: str) -> Iterator[str]:
    for match in _BREAK.finditer(name):
        yield f"{name[: match.end()]}*"
        yield f"*{name[match.start() :]}"


def gathered_pattern(names: Sequence[str]) -> str | None:
    """Return the pattern that several columns of one metric share, `*_loss`, unless `*` is only a split."""
    head = os.path.commonprefix(list(names))  # noqa: RUF071 - of characters, cut at a break below
    tail = os.path.commonprefix([name[::-1] for name in names])[::-1]  # noqa: RUF071
    head = head[: max((match.end() for match in _BREAK.finditer(head)), default=0)]
    breaks = [match.start() for match in _BREAK.finditer(tail)]
    tail = tail[breaks[0] :] if breaks else ""
    stars = {name[len(head) : len(name) - len(tail)].casefold() for name in names}
    metrics = {read_metric(name) for name in names}
    if len(names) < 2 or not head + tail or "" in stars or stars <= _SPLITS or len(metrics) > 1:
        return None
    return f"{head}*{tail}"


def value_columns(names: Iterable[str]) -> list[str]:
    """Return the columns that a metric gives its name to; those of training only if there are no others."""
    measured = [name for name in names if read_metric(name)]
    tested = [name for name in measured if not {"train", "training"} & {*_plain(name).split("_")}]
    return tested or measured


def _value(names: Sequence[str], sources: Mapping[str, str], tasks: set[str]) -> dict[str, str]:
    """Return the column of values, or the pattern of columns of values of a mixture's sources."""
    measured = value_columns(names)
    if len(measured) == 1:
        return {"value": measured[0]}
    pattern = gathered_pattern(measured)
    if pattern is None or tasks:
        return {}
    return {"value": pattern} if len({*starred_columns(pattern, measured)} & {*sources}) > 1 else {}


def _ask_for_values(names: Sequence[str], sources: Mapping[str, str], locator: RowLocator) -> None:
    """Raise TableError if columns have the names of a mixture's sources, and no metric's."""
    where = f"{locator.source} row 1: no column `value`"
    if len(sources) > 1 and {*sources} <= {*names}:
        losses = ", ".join(f"loss_{name}" for name in sources)
        raise TableError(f"{where}; if {', '.join(sources)} hold losses, rename them to {losses}.")
    for pattern in (pattern for name in names for pattern in _patterns(name)):
        if len(sources) > 1 and {*sources} <= {*starred_columns(pattern, names)}:
            raise TableError(f"{where}; if `{pattern}` hold losses, say {option('value', pattern)}.")


def option(role: str, name: str) -> str:
    """Return the option that names a column: `--column size=params`."""
    text = f"{role}={name}"
    return f'--column "{text}"' if re.search(r"[\s*()\[\]]", text) else f"--column {text}"
