"""Panels that Weights & Biases exports: a column `RUN - METRIC` of each run, its `__MIN` and `__MAX`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mnmt_laws.errors import TableError
from mnmt_laws.tables.column_map import ColumnMap

_ENDS = ("__MIN", "__MAX")
_BETWEEN = " - "


def read_panel(mapping: ColumnMap, names: Sequence[str], source: str) -> ColumnMap:
    """Return the columns of a file, with a run for each column of values if it is such a panel.

    Its first column is the step, or the tokens if that is its name.

    Args:
        mapping: What its reader was told of the columns.
        names: All columns of the file.
        source: Its name, for messages.

    Raises:
        TableError: If the panel shows several metrics and none is chosen.
    """
    if mapping.of_runs or not _is_panel(names):
        return mapping
    columns = dict(mapping.columns)
    if "value" not in columns:
        parts = [name.rpartition(_BETWEEN)[2] for name in names[1:] if not name.endswith(_ENDS)]
        metrics = [name for name in dict.fromkeys(parts) if not name.startswith("_")]
        if len(metrics) != 1:
            raise TableError(
                f"{source} row 1: columns of several metrics ({', '.join(metrics)}); choose one, as in "
                f'--column "value=*{_BETWEEN}{(metrics or parts)[0]}".'
            )
        columns["value"] = f"*{_BETWEEN}{metrics[0]}"
    length = "tokens" if "token" in names[0].casefold() else "step"
    if not {"step", "tokens"} & set(columns):
        columns[length] = names[0]
    return replace(mapping, columns=columns, of_runs=True)


def _is_panel(names: Sequence[str]) -> bool:
    values = [name for name in names[1:] if not name.endswith(_ENDS)]
    return bool(values) and all(_BETWEEN in name for name in values)
