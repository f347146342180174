"""The report as one self-contained page, and the numbers that its scripts calculate with."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from typing import Any

import jinja2
import numpy as np
import xarray as xr
from markupsafe import Markup

from mnmt_laws.answers.frontier import observed_range
from mnmt_laws.figures.points import NOTE, marked_pairs
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.figures import FRONTIER, FigureGroup
from mnmt_laws.report.findings import report_findings
from mnmt_laws.report.tables import headline_tiles, report_tables

SCRIPTS = ("capacity.js", "plot.js", "readout.js", "mixture.js", "frontier.js", "explorer.js")
"""The page's scripts, in the order in which they build on each other."""

_MOST_DRAWS = 200


def explorer_data(analysis: Analysis) -> dict[str, Any] | None:
    """Return the numbers that the page embeds; None without mixtures of tasks, or without a capacity law."""
    fit, observations = explored_fit(analysis), analysis.observations
    laws = {task: _laws(fit.parameters.expand_dims("draw"), task) for task in fit.tasks}
    if not analysis.has_mixtures or not all(laws.values()):
        return None
    data: dict[str, Any] = {
        "equation": fit.law.equation,
        "metric": observations.metric,
        "unit": observations.unit,
        "rising": observations.rising,
        "sizes": analysis.sizes,
        "tasks": [_task(fit, task, laws[task][0]) for task in fit.tasks],
    }
    if analysis.has_frontier:
        data |= {"range": list(observed_range(observations)), "models": _models(analysis)}
    return data


def explored_fit(analysis: Analysis) -> LawFit:
    """Return the law that tells partners apart, if there is one, and the capacity law otherwise."""
    return analysis.capacity if analysis.more_tasks is None else analysis.more_tasks.fit


def _task(fit: LawFit, task: str, law: dict[str, Any]) -> dict[str, Any]:
    weights = fit.fitted_weights(task)
    draws = _laws(fit.draws.isel(draw=slice(_MOST_DRAWS)), task)
    return {"name": task, "law": law, "draws": draws, "weights": [float(weights.min()), float(weights.max())]}


def _laws(parameters: xr.Dataset, task: str) -> list[dict[str, Any]]:
    """Return a task's parameters in every draw that determines all; by partner where they vary with it."""
    estimates = parameters.sel(task=task)
    if "partner" in estimates.dims:
        estimates = estimates.sel(partner=estimates.partner != task)
    draws = (estimates.isel(draw=draw) for draw in range(estimates.sizes["draw"]))
    return [_numbers(draw) for draw in draws if bool(np.isfinite(draw.to_array()).all())]


def _numbers(draw: xr.Dataset) -> dict[str, Any]:
    return {
        str(name): variable.to_series().to_dict() if "partner" in variable.dims else float(variable)
        for name, variable in draw.data_vars.items()
    }


def _models(analysis: Analysis) -> list[dict[str, Any]]:
    """Return every trained model of both tasks, the mean of its seeds."""
    tasks = analysis.tasks
    return [
        {
            "size": row["size"],
            "values": [row[task] for task in tasks],
            "role": row["role"],
            "corrected": row["corrected"],
            "label": _label(row, tasks),
        }
        for row in marked_pairs(analysis.observations).to_dict("records")
    ]


def _label(row: Mapping[Hashable, Any], tasks: list[str]) -> str:
    """Return a model's label, as `9.46K, p = 30% en-de: en-de 0.814, en-zh 0.902 (held out)`."""
    values = ", ".join(f"{task} {row[task]:.4g}" for task in tasks)
    notes = ["held out"] * (row["role"] == "held-out") + [NOTE] * row["corrected"]
    suffix = f" ({', '.join(notes)})" if notes else ""
    return f"{format_size(row['size'])}, p = {100 * row['weight']:.3g}% {tasks[0]}: {values}{suffix}"


def render_page(analysis: Analysis, groups: Sequence[FigureGroup]) -> str:
    """Return the whole report as HTML that needs nothing from outside itself."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mnmt_laws.report", "assets"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["anchor"] = _anchor
    return environment.get_template("page.html.j2").render(
        analysis=analysis,
        findings=report_findings(analysis),
        tiles=headline_tiles(analysis),
        explorer=explorer_data(analysis),
        frontier=next((group for group in groups if group.title == FRONTIER), None),
        figure_rows=_figure_rows([group for group in groups if group.title != FRONTIER]),
        tables=report_tables(analysis),
        style=_read("page.css"),
        script=Markup("\n").join(_read(name) for name in SCRIPTS),
        format_size=format_size,
        version=version("mnmt-laws"),
    )


def _read(name: str) -> Markup:
    """Return an asset, to be part of the page as it is."""
    return Markup(resources.files("mnmt_laws.report").joinpath("assets", name).read_text(encoding="utf-8"))


def _anchor(title: str) -> str:
    """Return the name by which the table of contents points to a heading."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _figure_rows(groups: Sequence[FigureGroup]) -> list[list[FigureGroup]]:
    """Return figure groups in the order of the page, with neighbours of a single panel side by side."""
    rows: list[list[FigureGroup]] = []
    for group in groups:
        single = len(group.panels) == 1 and not group.wide
        neighbour = bool(rows) and len(rows[-1]) == 1 and rows[-1][0]
        if single and neighbour and len(neighbour.panels) == 1 and not neighbour.wide:
            rows[-1].append(group)
        else:
            rows.append([group])
    return rows
