"""The report as one self-contained page."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import jinja2
from matplotlib.figure import Figure

from mnmt_laws.figures.coefficients import draw_coefficients
from mnmt_laws.figures.fractions import draw_fractions
from mnmt_laws.figures.frontier import draw_frontier
from mnmt_laws.figures.heldout import draw_held_out
from mnmt_laws.figures.losses import draw_losses, draw_parallels
from mnmt_laws.figures.quality import QUALITY_NAMES, draw_quality
from mnmt_laws.figures.style import to_svg
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.findings import find
from mnmt_laws.report.tables import Table, Tile, headline_tiles, report_tables

_FRONTIER_SIZES = 8


@dataclass(frozen=True, kw_only=True)
class Plate:
    """Figures that share a heading and a caption."""

    title: str
    caption: str
    panels: tuple[bytes, ...]
    """SVG, one a panel."""

    @property
    def images(self) -> tuple[str, ...]:
        """The panels as data addresses."""
        encoded = (base64.b64encode(panel).decode("ascii") for panel in self.panels)
        return tuple(f"data:image/svg+xml;base64,{panel}" for panel in encoded)

    def files(self) -> dict[str, bytes]:
        """The panels by file name, such as `trade-off-frontier-1.svg`."""
        stem = re.sub(r"[^a-z]+", "-", self.title.lower())
        return {f"{stem}-{number}.svg": panel for number, panel in enumerate(self.panels, start=1)}


def render_page(analysis: Analysis, plates: Sequence[Plate]) -> str:
    """The whole report as HTML that needs nothing from outside itself."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mnmt_laws.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    tiles: tuple[Tile, ...] = headline_tiles(analysis)
    tables: tuple[Table, ...] = report_tables(analysis)
    return environment.get_template("page.html.j2").render(
        analysis=analysis,
        findings=find(analysis),
        tiles=tiles,
        shelves=_shelves(plates),
        tables=tables,
        version=version("mnmt-laws"),
    )


def _shelves(plates: Sequence[Plate]) -> list[list[Plate]]:
    """Plates in the order of the page, neighbours of a single panel side by side."""
    shelves: list[list[Plate]] = []
    for plate in plates:
        single = len(plate.panels) == 1
        if single and shelves and len(shelves[-1]) == 1 and len(shelves[-1][0].panels) == 1:
            shelves[-1].append(plate)
        else:
            shelves.append([plate])
    return shelves


def draw_plates(analysis: Analysis) -> list[Plate]:
    """Every figure of the report, in the order of the page."""
    plates = [_losses(analysis), _parallels(analysis), _coefficients(analysis), _fractions(analysis)]
    if analysis.has_frontier:
        plates.append(_frontier(analysis))
    if not analysis.held_out.rows.empty:
        plates.append(_held_out(analysis))
    return plates + _quality(analysis)


def _losses(analysis: Analysis) -> Plate:
    per_weighting, joint, capacity = analysis.fits
    return _plate(
        "Losses and laws",
        f"The {analysis.observations.metric} of each model over its size, a colour a weight. "
        "Solid: the joint law, one exponent and one limit for all weights. Dotted: a law a weight "
        "alone; where both coincide, the weight acts through the factor only. Hollow points were held out; "
        "dashed lines are the capacity law at weights it was not fitted to.",
        [
            draw_losses(task=task, per_weighting=per_weighting, joint=joint, capacity=capacity)
            for task in analysis.tasks
        ],
    )


def _parallels(analysis: Analysis) -> Plate:
    return _plate(
        "The same, above the limit",
        "With the joint limit L∞ subtracted and both axes logarithmic, laws of one exponent are parallel.",
        [draw_parallels(task=task, joint=analysis.joint) for task in analysis.tasks],
    )


def _coefficients(analysis: Analysis) -> Plate:
    return _plate(
        "Coefficients over the weight",
        "Each law fitted to one weight alone. If the weight acts through β only, α and L∞ stay flat within "
        "their bands: one standard deviation over refits to noisy losses. Dashed: the joint law.",
        [
            draw_coefficients(
                task=task,
                per_weighting=analysis.per_weighting,
                joint=analysis.joint,
                irreducible=analysis.known_limit(task),
            )
            for task in analysis.tasks
        ],
    )


def _fractions(analysis: Analysis) -> Plate:
    return _plate(
        "Effective share of the model",
        "f(p) = N_eff / N: the size of the single-task model that does as well, as a share of N. Above the "
        "diagonal a task has more of the model than its weight; the tasks share what they learn.",
        [
            draw_fractions(task=task, effective=analysis.effective, capacity=analysis.capacity)
            for task in analysis.tasks
        ],
    )


def _frontier(analysis: Analysis) -> Plate:
    sizes = analysis.sizes
    step = math.ceil(len(sizes) / _FRONTIER_SIZES)
    return _plate(
        "Trade-off frontier",
        "Both tasks as the weights change, one line a size, predicted by the capacity law. Points are "
        "trained models; hollow ones were held out.",
        [draw_frontier(analysis.capacity, sizes=sizes[::-1][::step][::-1])],
    )


def _held_out(analysis: Analysis) -> Plate:
    return _plate(
        "Held-out models",
        "Measured against predicted by the capacity law, which was fitted without them. The marker tells "
        "what it had not seen.",
        [draw_held_out(analysis.held_out, analysis.observations)],
    )


def _quality(analysis: Analysis) -> list[Plate]:
    metrics = [name for name in analysis.quality.columns if name in QUALITY_NAMES]
    if not metrics:
        return []
    names = " and ".join(QUALITY_NAMES[metric] for metric in metrics)
    return [
        _plate(
            "Translation quality against loss",
            f"{names} of every model against its loss. A tight curve means that what the laws say of loss "
            "carries over to translations.",
            [draw_quality(analysis.quality, metric) for metric in metrics],
        )
    ]


def _plate(title: str, caption: str, figures: list[Figure]) -> Plate:
    return Plate(title=title, caption=caption, panels=tuple(to_svg(figure) for figure in figures))
