"""The report as one self-contained page."""

from __future__ import annotations

import math
import re
from functools import cache
from importlib import resources
from importlib.metadata import version

import jinja2
import vl_convert
from markupsafe import Markup

from mnmt_laws.figures.style import format_size
from mnmt_laws.report.advice import Advice, Interval, Trust
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.explorer import explorer_data
from mnmt_laws.report.explorer_charts import explorer_specs
from mnmt_laws.report.first_screen import make_advice, make_trust
from mnmt_laws.report.text import UNKNOWN, format_interval, format_number

_TO_WINDOW = "window.vegaEmbed = vegaEmbed;"
_SCRIPTS = ("explorer.js", "page.js")  # in the order in which they build on each other


def render_page(analysis: Analysis, *, advice: Advice | None = None, trust: Trust | None = None) -> str:
    """Return the whole report as HTML that needs nothing from outside itself.

    Args:
        analysis: The analysis to show.
        advice: The first screen's answer, by default that of the analysis.
        trust: The checks of the advice, by default those of the analysis.
    """
    study = analysis.study
    explorer = explorer_data(study)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            study=study,
            advice=advice or make_advice(study),
            trust=trust or make_trust(study),
            findings=analysis.findings,
            explorer=explorer,
            explorer_specs={} if explorer is None else explorer_specs(study, explorer),
            groups=analysis.figures,
            tables=analysis.tables,
            design=analysis.answers.get("design"),
            warnings=analysis.warnings,
            style=_read("page.css"),
            vega=Markup(vega_bundle()),
            script=Markup("\n").join(_read(name) for name in _SCRIPTS),
            version=version("mnmt-laws"),
        )
    )


@cache
def vega_bundle() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script."""
    bundle: str = vl_convert.javascript_bundle(_TO_WINDOW)
    return bundle


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mnmt_laws.report", "assets"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "anchor": _anchor,
        "size": format_size,
        "number": lambda value: format_number(value, 4),
        "interval": lambda ends: format_interval(ends[0], ends[1], 4),
        "percents": _format_percents,
    }
    return environment


def _read(name: str) -> Markup:
    """Return an asset, which the page includes unchanged."""
    return Markup(resources.files("mnmt_laws.report").joinpath("assets", name).read_text(encoding="utf-8"))


def _anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _format_percents(ends: Interval) -> str:
    return UNKNOWN if math.isnan(ends[0]) else f"{ends[0]:.0%} to {ends[1]:.0%}"
