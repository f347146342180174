"""The page that tests open in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_pages import browser, visit

from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.figures import draw_figures
from mnmt_laws.report.page import render_page

__all__ = ["browser", "pages", "visit"]


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory, loss_analysis: Analysis) -> dict[str, Path]:
    """The written page of two tasks."""
    path = tmp_path_factory.mktemp("pages") / "two.html"
    path.write_text(render_page(loss_analysis, draw_figures(loss_analysis)), encoding="utf-8")
    return {"two": path}
