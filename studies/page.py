"""A page of docs/studies: the folder of its run tables, and the numbers and figures made from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.measurement import Figures, print_table
from mnmt_laws.figures import save
from mnmt_laws.figures.style import Chart

PAGES = Path("docs/studies")
"""Relative to the repository's root, from which analyses are run, so that results do not name a machine."""

Answer = pd.DataFrame | Iterable[Figures]
"""Rows that a page is made of."""

_DIGITS = 5  # significant; beyond them processors differ


def write_page(folder: Path, results: Mapping[str, Answer], charts: Mapping[str, Chart]) -> None:
    """Print the tables, and write results.json, numbers with five digits, and a file NAME.svg for each chart.

    Iterators are read one by one, and each table is printed as soon as it is there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records: Figures = {}
    for name, table in results.items():
        records[name] = table.to_dict("records") if isinstance(table, pd.DataFrame) else list(table)
        _print_rows(name, records[name])
    text = json.dumps(_rounded(records), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    for name, chart in charts.items():
        save(chart, folder / f"{name}.svg")


def _rounded(value: Any) -> Any:
    """Return plain data with rounded numbers; NaN and the infinities are null."""
    if isinstance(value, Mapping):
        return {str(key): _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if abs(value) < float("inf") else None
    return value


def _print_rows(title: str, rows: Sequence[Figures]) -> None:
    """Print a heading and a table, numbers with three digits."""
    print(f"\n### {title}\n")
    print_table([{key: _short(value) for key, value in row.items()} for row in rows])


def _short(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.3g}"
    return " to ".join(str(_short(item)) for item in value) if isinstance(value, list) else value
