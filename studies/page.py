"""A page of docs/studies: the folder of its run tables, and of the numbers and figures made from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measurement import Figures
from mnmt_laws.figures import save
from mnmt_laws.figures.style import Chart

PAGES = Path("docs/studies")
"""Relative to the repository's root, from which analyses are run, so that results do not name a machine."""

_DIGITS = 5  # significant; beyond them processors differ


def write_page(folder: Path, results: Figures, charts: Mapping[str, Chart]) -> None:
    """Write results.json, numbers with five digits, and a file NAME.svg for each chart."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_rounded(results), indent=1, ensure_ascii=False, allow_nan=False)
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
