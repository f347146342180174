"""The figures of the page, counterparts of those of Fernandes et al. 2023."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import altair as alt
import pandas as pd

from mnmt_laws import ResidualBootstrap, effective_fractions, exponents_by_exposure
from mnmt_laws.figures import (
    draw_coefficients,
    draw_fractions,
    draw_fractions_of_sets,
    draw_frontier,
    draw_losses,
    draw_quality,
    marks,
    panels_of,
)
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.style import Chart, classes, color, count_axis, ramp, styled, value_axis
from studies.analysis.real_text.exposure import exponents, shares_by_size
from studies.analysis.real_text.laws import Fits
from studies.analysis.real_text.pairs import TESTSETS
from studies.analysis.real_text.quality import scores
from studies.analysis.real_text.rivals import HALF, updates_by_size

OUT, INTO, SCORED = "en-de-zh", "de-zh-en", "en-de-fr"
"""The pairs whose exponents the first figure shows, and the pair of Figs. 8 and 19."""


def _grid(panels: Iterable[Chart], columns: int = 2) -> Chart:
    """Return panels side by side, each with a legend of its own."""
    bare = [panel.copy() for chart in panels for panel in panels_of(chart)]
    for panel in bare:
        panel.config = alt.Undefined  # the whole has it
    return styled(*bare, columns=columns).resolve_scale(color="independent", shape="independent")


def _each(fits: Mapping[str, Fits], draw: Callable[[Fits, str], Chart]) -> list[Chart]:
    """Return a panel for each task of each pair."""
    return [_titled(draw(fit, task), f"{task}, {fit.pair.title}")
            for fit in fits.values() for task in fit.pair.tasks]  # fmt: skip


def _titled(chart: Chart, title: str) -> Chart:
    return chart.properties(title=title)


def draw_exposure(fits: Mapping[str, Fits], folder: Path) -> Chart:
    """Draw the page's first figure: gains at equal updates and f over size, exponents over exposure."""
    return _grid(_first_figure(fits, folder))


def _first_figure(fits: Mapping[str, Fits], folder: Path) -> Iterator[Chart]:
    parts = [_halves(rows, name) for name, rows in updates_by_size(folder)]
    title = f"loss together − alone, own tokens and updates equal, p = {HALF:g}"
    yield _over_size(pd.concat(parts), title=title, label="difference (nats per token)")
    parts = [_halves(shares_by_size(fits[name].pair), name) for name in (OUT, INTO, SCORED)]
    yield _over_size(pd.concat(parts), title=f"f read without a law, p = {HALF:g}",
                     label="effective share f = N_eff / N")  # fmt: skip
    for name, place, words in ((OUT, 1, "over exposure"), (INTO, 0, "over the weight")):
        task = fits[name].pair.tasks[0]
        panels = panels_of(draw_coefficients(exponents(fits[name].pair), task=task, names=["alpha"]))
        yield _titled(panels[place], f"{task}, exponent α (L∞ = 0) {words}, ± 1 std")


def _halves(rows: pd.DataFrame, pair: str) -> pd.DataFrame:
    """Return the known rows of weight `HALF`, a line for each task."""
    rows = rows[rows["weight"].eq(HALF) & rows["value"].notna()]
    beside = pair.removeprefix("en-").replace("-en", "").split("-")
    names = {task: f"{task} beside {next(other for other in beside if other not in task.split('-'))}"
             for task in rows["task"].unique()}  # fmt: skip
    return rows.assign(line=rows["task"].map(names))


def _over_size(rows: pd.DataFrame, *, title: str, label: str, shades: bool = False) -> Chart:
    """Draw values over size with the ends of seeds as bars, a colour for each `line`."""
    labels = list(dict.fromkeys(rows["line"]))
    points = rows.assign(kind=rows.get("kind", "measured"))
    known = points[points["kind"].eq("measured")]
    y = value_axis("value", points[["value", "lower", "upper"]].stack(), label, log=False)
    kinds = {"measured": "circle", "at most": "triangle-down", "at least": "triangle-up"}
    layers = [marks.lines(known, interpolate="linear", strokeWidth=1.2), *marks.bars(known),
              marks.points(marks.describe(points), kinds=kinds, value=label)]  # fmt: skip
    key = color("line", labels, ramp(len(labels)) if shades else None)
    return styled(
        marks.panel(*layers, x=count_axis("size", points["size"], SIZE_TITLE), y=y, color=key, title=title)
    )


def _shares_by_size(fits: Fits, task: str) -> Chart:
    rows = shares_by_size(fits.pair)
    rows = rows[rows["task"].eq(task) & rows.groupby(["task", "weight"])["size"].transform("size").gt(2)]
    rows = rows.assign(value=rows["bound"]).sort_values("weight")
    rows["line"], _ = classes(rows["weight"], lambda weight: f"p = {weight:.3g}")
    return _over_size(rows, title="", label="effective share f = N_eff / N", shades=True)


def _shares(fits: Fits, task: str) -> Chart:
    laws = {"f̂, eq. 12": fits.longest("capacity"), "f̂, eq. 13": fits.longest("linear-capacity")}
    return draw_fractions(task=task, effective=effective_fractions(fits.longest("joint")), laws=laws)


def _gains(fits: Mapping[str, Fits]) -> Iterator[Chart]:
    """Yield in and out of domain, a near and a far second language, and both directions."""
    known = {(name, testset): effective_fractions(fit.longest("joint", testset))
             for name, fit in fits.items() for testset in TESTSETS}  # fmt: skip
    titles = {name: fit.pair.title for name, fit in fits.items()}
    sets = {words: known[OUT, testset] for testset, words in TESTSETS.items()}
    yield _titled(draw_fractions_of_sets(sets), f"{titles[OUT]}: in and out of domain")
    for names, words in (((OUT, SCORED), "a far and a near second language"),
                         ((OUT, SCORED, INTO), "out of English and into it")):  # fmt: skip
        sets = {titles[name]: known[name, "test"] for name in names}
        yield _titled(draw_fractions_of_sets(sets), words)


def _losses(fits: Fits, task: str, *, testset: str) -> Chart:
    joint, separate = (fits.longest(law, testset) for law in ("joint", "per-weighting"))
    return draw_losses(task=task, joint=joint, per_weighting=separate)


def _coefficients(fits: Mapping[str, Fits], testset: str) -> Iterator[Chart]:
    for fit in fits.values():
        joint = fit.longest("joint", testset)
        curves = exponents_by_exposure(joint.observations, uncertainty=ResidualBootstrap(refits=fit.refits))
        for task in fit.pair.tasks:
            for panel in panels_of(draw_coefficients(curves, task=task, joint=joint)):
                yield _titled(panel, f"{task}, {fit.pair.title}").properties(width=230)


def _frontiers(fits: Mapping[str, Fits]) -> Iterator[Chart]:
    for fit in fits.values():
        for law, words in (("capacity", "eq. 12"), ("linear-capacity", "eq. 13")):
            chart = draw_frontier(fit.longest(law), sizes=fit.pair.sizes)  # type: ignore[arg-type]
            yield _titled(chart, f"{fit.pair.title}: f̂ by {words}")


def _quality(fits: Fits) -> Iterator[Chart]:
    """Yield chrF over the loss and its frontier, in and out of domain."""
    for testset, words in TESTSETS.items():
        yield _titled(draw_quality(scores(fits.pair, testset), "chrf"), f"chrF over the loss, {words}")
        chrf = fits.longest("capacity", testset, "chrf")
        yield _titled(draw_frontier(chrf, sizes=fits.pair.sizes), f"frontier of chrF, {words}")


FIGURES: dict[str, Callable[[Mapping[str, Fits]], Chart]] = {
    "shares-by-size": lambda fits: _grid(_each(fits, _shares_by_size)),
    "shares": lambda fits: _grid(_each(fits, _shares)),
    "gains": lambda fits: _grid(_gains(fits)),
    "losses": lambda fits: _grid(_each(fits, partial(_losses, testset="test"))),
    "losses-out-of-domain": lambda fits: _grid(_each(fits, partial(_losses, testset="debian"))),
    "coefficients": lambda fits: _grid(_coefficients(fits, "test"), columns=3),
    "coefficients-out-of-domain": lambda fits: _grid(_coefficients(fits, "debian"), columns=3),
    "frontiers": lambda fits: _grid(_frontiers(fits)),
    "quality": lambda fits: _grid(_quality(fits[SCORED])),
}
"""The figures in folds by name."""
