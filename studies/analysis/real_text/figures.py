"""The figures of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import altair as alt

from mnmt_laws import EffectiveFractions, LawFit, effective_fractions
from mnmt_laws.figures import (
    draw_fractions,
    draw_frontier,
    draw_losses,
    draw_quality,
    draw_relative_gain,
    panels_of,
)
from mnmt_laws.figures.style import Chart, styled
from studies.analysis.real_text.laws import WITH_LENGTH, Fits, pairs_of_metrics, scored
from studies.analysis.real_text.pairs import TESTSETS

SHOWN = "en-de-zh"
"""The pair of tasks that the page draws."""


def draw_all(fits: Mapping[str, Fits]) -> Iterator[tuple[str, Chart]]:
    """Yield the name and the chart of each figure that the tables allow."""
    if SHOWN in fits:
        yield from ((f"{SHOWN}-{figure}", chart) for figure, chart in _of_pair(fits[SHOWN]))
    related = {name: fits[name] for name in ("en-de-fr", "en-de-zh") if name in fits}
    if len(related) == 2:
        sets = {f"{each.pair.title}, {words}": _fractions(each, testset)
                for each in related.values() for testset, words in TESTSETS.items()}  # fmt: skip
        yield "related", draw_relative_gain(sets, task="en-de")
    directions = {name: fits[name] for name in ("en-de-zh", "de-zh-en") if name in fits}
    if len(directions) == 2:
        sets = {each.pair.title: _fractions(each, "test") for each in directions.values()}
        yield "directions", draw_relative_gain(sets)


def _of_pair(fits: Fits) -> Iterator[tuple[str, Chart]]:
    pair, step = fits.pair, fits.pair.steps[-1]
    joint, separate = fits.of("joint", "test", step), fits.of("per-weighting", "test", step)
    losses = [draw_losses(task=task, joint=joint, per_weighting=separate) for task in pair.tasks]
    yield "losses", _side_by_side(losses)
    shares = [draw_fractions(task=task, laws=_laws_of_share(fits)) for task in pair.tasks]
    yield "shares", _side_by_side(shares)
    if scored(pair):
        metrics = pairs_of_metrics(pair)
        yield "quality", draw_quality(metrics, "chrf")
        chrf = fits.of("capacity", "test", step, "chrf")
        yield "frontier-chrf", draw_frontier(chrf, sizes=sorted(chrf.rows["size"].unique()))


def _laws_of_share(fits: Fits) -> dict[str, LawFit]:
    """Return the laws that have an f̂(p): of each length by itself, and of all lengths."""
    by_step = {f"{step} steps": fits.of("capacity", "test", step) for step in fits.pair.steps}
    return {**by_step, "all lengths, by share-tied": fits.of(WITH_LENGTH, "test")}


def _fractions(fits: Fits, testset: str) -> EffectiveFractions:
    return effective_fractions(fits.of("joint", testset, fits.pair.steps[-1]))


def _side_by_side(charts: list[Chart]) -> Chart:
    panels = [panel.copy() for chart in charts for panel in panels_of(chart)]
    for panel in panels:
        panel.config = alt.Undefined  # the whole has it
    return styled(*panels, columns=2)
