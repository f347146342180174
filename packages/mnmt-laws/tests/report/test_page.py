"""The page needs nothing else, and holds what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pandas as pd

from mnmt_laws import Perturbation
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.page import render_page

Analyse = Callable[..., Analysis]


def test_page_holds_each_kind_of_figure_once(page: Any) -> None:
    figures = re.findall(r'<details id="[^"]*" class="fold".*?</figure>', page.text, flags=re.DOTALL)
    headings = [heading for figure in figures for heading in re.findall(r"<h2[^>]*>([^<]+)</h2>", figure)]
    expected = {"Losses and laws", "Effective share of the model", "Trade-off frontier"}
    assert expected <= set(headings)
    assert len(headings) == len(set(headings))
    assert all(re.search(r"<figcaption>.{40,}</figcaption>", figure) for figure in figures)


def test_first_come_advice_contents_findings_figures_tables(page: Any) -> None:
    parts = ('id="advice"', "<figure", 'id="trust"', "<nav", 'id="findings"', 'class="fold"', 'id="tables"')
    places = [page.text.index(part) for part in parts]
    assert places == sorted(places)


def test_contents_lead_to_places_of_the_page(page: Any) -> None:
    contents = page.text.partition("<nav")[2].partition("</nav>")[0]
    targets = re.findall(r'href="#([^"]+)"', contents)
    assert len(targets) > 4
    assert all(f'id="{target}"' in page.text for target in targets)


def test_page_links_to_nothing_outside(page: Any) -> None:
    own = re.sub(r"<script>.*?</script>", "", page.text, flags=re.DOTALL)
    assert re.findall(r"url\((?!#)|@import|<link|<iframe|src=\"(?!data:)", own) == []


def test_names_of_anchors_are_unique(page: Any) -> None:
    names = re.findall(r'\bid="([^"]+)"', page.text)
    assert len(names) == len(set(names))


def test_names_cannot_inject_markup(losses: pd.DataFrame, analyse_table: Analyse) -> None:
    alone = losses[losses["weight"].eq(1.0)]
    renamed = alone.drop(columns="mixture").replace({"task": {"aa": "</script><b>de"}})
    analysis = analyse_table(renamed, uncertainty=Perturbation(refits=0))
    assert "<b>de" not in render_page(analysis)
