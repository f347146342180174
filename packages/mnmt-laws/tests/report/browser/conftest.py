"""The pages that tests open in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_pages import browser, visit

from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.figures import draw_figures
from mnmt_laws.report.page import render_page

__all__ = ["browser", "pages", "visit"]


@pytest.fixture(scope="session")
def pages(
    tmp_path_factory: pytest.TempPathFactory,
    loss_analysis: Analysis,
    three_analysis: Analysis,
    length_analysis: Analysis,
) -> dict[str, Path]:
    """The written pages of two tasks, of three, and of two read by a law that knows the length."""
    folder = tmp_path_factory.mktemp("pages")
    written = {}
    analyses = {"two": loss_analysis, "three": three_analysis, "length": length_analysis}
    for name, analysis in analyses.items():
        groups = [] if name == "length" else draw_figures(analysis)
        written[name] = folder / f"{name}.html"
        written[name].write_text(render_page(analysis, groups), encoding="utf-8")
    return written
