"""An answer of a report: sentences, figures, tables and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from mnmt_laws.figures.style import Chart, chart_spec, panels_of, to_svg
from mnmt_laws.fitting.parameters import null_if_nan
from mnmt_laws.report.text import TextTable


@dataclass(frozen=True)
class FigureGroup:
    """Figures that share a heading and a caption."""

    title: str
    """The heading."""

    caption: str
    """The sentences that explain the figures."""

    draw: Callable[[], Sequence[Chart]]
    """Draws the charts, each of one panel or several."""

    folded: bool = False
    """Whether the page shows it when it is opened only."""

    @cached_property
    def charts(self) -> tuple[Chart, ...]:
        """The charts."""
        return tuple(self.draw())

    @property
    def specs(self) -> tuple[dict[str, Any], ...]:
        """Vega-Lite of each panel, for a page to embed; a panel takes the width of its place."""
        return tuple(chart_spec(panel) for chart in self.charts for panel in panels_of(chart))

    def files(self) -> dict[str, bytes]:
        """Return the charts as SVG by file name, such as `trade-off-frontier-1.svg`."""
        stem = re.sub(r"[^a-z]+", "-", self.title.lower())
        return {f"{stem}-{number}.svg": to_svg(chart) for number, chart in enumerate(self.charts, start=1)}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to one question."""

    findings: tuple[str, ...] = ()
    """In sentences."""

    figures: tuple[FigureGroup, ...] = ()

    tables: tuple[TextTable, ...] = ()

    texts: tuple[str, ...] = ()
    """Files to copy, such as the studies of proposed runs."""

    document: Mapping[str, Any] = field(default_factory=dict)
    """Its keys in report.json, in the types of JSON."""

    warnings: tuple[str, ...] = ()


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows in the types of JSON; NaN becomes null."""
    return [plain({str(key): value for key, value in row.items()}) for row in frame.to_dict("records")]


def plain(value: Any) -> Any:
    """Return numbers, and tuples and mappings of them, in the types of JSON; NaN becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (tuple, list)) else null_if_nan(value)
