"""The report as one page."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from importlib.metadata import version

import altair as alt
import jinja2
from markupsafe import Markup

from mnmt_laws.figures.style import can_render, format_size
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.explorer import explorer_data
from mnmt_laws.report.explorer_charts import explorer_specs
from mnmt_laws.report.first_screen import FirstScreen, first_screen
from mnmt_laws.report.study import Study

_TO_WINDOW = "window.vegaEmbed = vegaEmbed;"
_NETWORK = "https://cdn.jsdelivr.net/npm"  # as in the pages that Altair writes
_SCRIPTS = ("explorer.js", "page.js")  # in the order in which they build on each other


def render_page(analysis: Analysis, screen: FirstScreen | None = None) -> str:
    """Return the whole report as HTML that needs nothing from outside itself, or Vega only (`vega_scripts`).

    Args:
        analysis: The analysis to show.
        screen: The first screen, by default that of the study.
    """
    study = analysis.study
    explorer = explorer_data(study)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            study=study,
            whole=whole_sizes(study),
            screen=screen or first_screen(study),
            answers=analysis.answers,
            findings=analysis.findings,
            explorer=explorer,
            explorer_specs={} if explorer is None else explorer_specs(study, explorer),
            groups=analysis.figures,
            tables=analysis.tables,
            warnings=analysis.warnings,
            style=_read("page.css"),
            vega=Markup(vega_scripts()),
            script=Markup("\n").join(_read(name) for name in _SCRIPTS),
            version=version("mnmt-laws"),
        )
    )


def whole_sizes(study: Study) -> tuple[int, int] | None:
    """Return the least and greatest number of all parameters, embeddings too; None where none is recorded."""
    counts = [record.num_params for record in study.records if record.num_params is not None]
    return (min(counts), max(counts)) if counts else None


def vega_scripts() -> str:
    """Return Vega, Vega-Lite and vega-embed: as a script, or as addresses without the extra `svg`."""
    if can_render():
        return f"<script>{vega_bundle()}</script>"
    versions = (
        f"vega@{alt.VEGA_VERSION}",
        f"vega-lite@{alt.VEGALITE_VERSION}",
        f"vega-embed@{alt.VEGAEMBED_VERSION}",
    )
    return "\n".join(f'<script src="{_NETWORK}/{version}"></script>' for version in versions)


@cache
def vega_bundle() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script."""
    import vl_convert

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
    }
    return environment


def _read(name: str) -> Markup:
    """Return an asset, which the page includes unchanged."""
    return Markup(resources.files("mnmt_laws.report").joinpath("assets", name).read_text(encoding="utf-8"))


def _anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
