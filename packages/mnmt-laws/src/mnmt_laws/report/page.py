"""The report as one self-contained page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from importlib.metadata import version

import jinja2
from markupsafe import Markup

from mnmt_laws.figures.style import format_size
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.explorer import SCRIPTS, explorer_data
from mnmt_laws.report.findings import find
from mnmt_laws.report.plate import Plate
from mnmt_laws.report.plates import FRONTIER
from mnmt_laws.report.tables import headline_tiles, report_tables


def render_page(analysis: Analysis, plates: Sequence[Plate]) -> str:
    """The whole report as HTML that needs nothing from outside itself."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mnmt_laws.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["anchor"] = _anchor
    return environment.get_template("page.html.j2").render(
        analysis=analysis,
        findings=find(analysis),
        tiles=headline_tiles(analysis),
        explorer=explorer_data(analysis),
        frontier=next((plate for plate in plates if plate.title == FRONTIER), None),
        shelves=_shelves([plate for plate in plates if plate.title != FRONTIER]),
        tables=report_tables(analysis),
        style=_read("page.css"),
        script=Markup("\n").join(_read(name) for name in SCRIPTS),
        format_size=format_size,
        version=version("mnmt-laws"),
    )


def _read(name: str) -> Markup:
    """A file of this package, to be part of the page as it is."""
    return Markup(resources.files("mnmt_laws.report").joinpath(name).read_text(encoding="utf-8"))


def _anchor(title: str) -> str:
    """The name by which the table of contents points to a heading."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _shelves(plates: Sequence[Plate]) -> list[list[Plate]]:
    """Plates in the order of the page, neighbours of a single panel side by side."""
    shelves: list[list[Plate]] = []
    for plate in plates:
        single = len(plate.panels) == 1 and not plate.wide
        neighbour = bool(shelves) and len(shelves[-1]) == 1 and shelves[-1][0]
        if single and neighbour and len(neighbour.panels) == 1 and not neighbour.wide:
            shelves[-1].append(plate)
        else:
            shelves.append([plate])
    return shelves
