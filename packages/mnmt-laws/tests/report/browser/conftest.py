"""The pages that tests open in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_pages import browser, visit

from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.page import render_page

__all__ = ["browser", "pages", "visit"]


def write(folder: Path, name: str, analysis: Analysis) -> Path:
    """Write the page of an analysis."""
    path = folder / f"{name}.html"
    path.write_text(render_page(analysis), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory, loss_analysis: Analysis) -> dict[str, Path]:
    """The written page of two tasks, to which others are added."""
    folder = tmp_path_factory.mktemp("pages")
    return {"two": write(folder, "two", loss_analysis)}


@pytest.fixture(scope="session")
def more_pages(pages: dict[str, Path], three_analysis: Analysis, length_analysis: Analysis) -> None:
    """The pages of three tasks, and of two read by a law that knows the length."""
    for name, analysis in {"three": three_analysis, "length": length_analysis}.items():
        pages[name] = write(pages["two"].parent, name, analysis)
