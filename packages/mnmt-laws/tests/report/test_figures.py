"""Figures of a report have a place on its page."""

from __future__ import annotations

from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.figures import draw_figures


def test_laws_that_know_length_have_a_figure(length_analysis: Analysis) -> None:
    groups = {group.title: group for group in draw_figures(length_analysis)}
    assert len(groups["Losses over training length"].charts) == 2
