"""Run tables of a study read as one, and rows of numbers as Markdown tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pandas as pd

from benchmarks.measurement import Figures, print_table


def read_runs(*files: Path) -> pd.DataFrame:
    """Return the rows of run tables; names of runs begin with their study, since two may share one."""
    rows = pd.concat([pd.read_csv(file) for file in files], ignore_index=True)
    return rows.assign(run=rows["study"] + "/" + rows["run"])


def print_rows(title: str, rows: Sequence[Figures], *, without: Collection[str] = ()) -> None:
    """Print a heading and a table, numbers with three digits, some columns left out."""
    print(f"\n### {title}\n")
    print_table([{key: _short(value) for key, value in row.items() if key not in without} for row in rows])


def _short(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.3g}"
    return " to ".join(str(_short(item)) for item in value) if isinstance(value, list) else value
