"""Decisions beside measurements: cost over the weight, and advice from smaller models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mnmt_laws.answers.decision.choice import Question, spread_of
from mnmt_laws.answers.decision.wants import Want
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.forecasts.forecast import forecast
from mnmt_laws.forecasts.target import at_length
from mnmt_laws.tables.observations import Observations

_FEWEST = 3  # mixtures of one size, to tell a better one from a worse one
_DIGITS = 6
_CENTRAL = 0.8  # of the draws, in the band of a curve


def cost_curve(question: Question, weights: Mapping[str, float], *, count: int = 99) -> pd.DataFrame:
    """Return what other weights of the first of two sources cost more than a mixture.

    Args:
        question: A want of the models that a forecast predicts.
        weights: The mixture.
        count: The number of weights.

    Returns:
        Columns `weight`, `cost` (mean over draws), `lower` and `upper` (the central 80% of the draws).

    Raises:
        ArgumentError: If there are not two sources.
    """
    sources = question.forecast.sources
    if len(sources) != 2:
        raise ArgumentError(f"a cost over one weight takes two sources, but there are {len(sources)}.")
    first = np.linspace(0, 1, count + 2)[1:-1]
    points = np.stack([first, 1 - first], axis=1)
    point = np.array([[weights[name] for name in sources]])
    anchors = question.anchors(spread_of(question))
    extra = question.costs(points, anchors) - question.costs(point, anchors)
    lower, upper = bounds_of(extra, _CENTRAL)
    return pd.DataFrame({"weight": first, "cost": extra.mean(axis=0), "lower": lower, "upper": upper})


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Mixtures that were trained at one size, and their measured cost."""

    size: float
    """N, parameters."""

    tokens: float | None
    """D, tokens of all tasks; None where the table has one length."""

    sources: list[str]

    mixtures: Array
    """(n, sources)."""

    costs: Array
    """(n,), means over seeds, in the metric's unit."""

    def nearest(self, weights: Mapping[str, float]) -> int:
        """Return the place of the mixture nearest to some weights."""
        point = np.array([weights[name] for name in self.sources])
        return int(np.abs(self.mixtures - point).sum(axis=1).argmin())


def measured_costs(observations: Observations, want: Want) -> Measured:
    """Return the measured cost of the mixtures that were trained at the largest size.

    It is the largest size with three mixtures or more of which every task was measured and trained on; where
    lengths vary, after the longest training.

    Args:
        observations: The losses.
        want: What is wanted; the aim `mean` or `worst`.

    Raises:
        TableError: If there is no such size.
        ArgumentError: If the aim is another.
    """
    if want.aim not in ("mean", "worst"):
        raise ArgumentError(f"`want` must aim at mean or worst, but aims at {want.aim}.")
    tokens = float(observations.frame["tokens"].max()) if observations.lengths.within else None
    longest = observations if tokens is None else at_length(observations, tokens) or observations
    sources, means = _means(longest, list(want.importance))
    counts = means.groupby(level="size").size()
    if not (counts >= _FEWEST).any():
        raise TableError(f"{observations.source}: no size with {_FEWEST} mixtures of all tasks.")
    size = float(counts.index[counts >= _FEWEST].max())
    losses = means.loc[size].to_numpy(float).T[None] * (-1 if observations.rising else 1)
    mixtures = np.array(means.loc[size].index.to_list())
    costs = want.costs(losses, np.zeros((1, 1)), list(want.importance))[0]
    return Measured(size=size, tokens=tokens, sources=sources, mixtures=mixtures, costs=costs)


def _means(observations: Observations, tasks: list[str]) -> tuple[list[str], pd.DataFrame]:
    """Return the sources, and the mean of each task by size and mixture, where all tasks have one."""
    rows = observations.frame[observations.frame["weight"] > 0]
    weights = observations.mixtures_of(rows).round(_DIGITS)
    cells = pd.DataFrame({"size": rows["size"], "task": rows["task"], "value": rows["value"]})
    cells["mixture"] = list(weights.itertuples(index=False, name=None))
    table = cells.pivot_table(index=["size", "mixture"], columns="task", values="value")
    return [str(name) for name in weights.columns], table.reindex(columns=tasks).dropna()


@dataclass(frozen=True, kw_only=True)
class AdviceTest:
    """Advice from smaller models, among mixtures that were trained at a larger size."""

    size: float
    """N of the models that judge it, parameters."""

    count: int
    """The number of their mixtures."""

    weights: dict[str, float]
    """The mixture that was advised among them."""

    stated: float
    """Expected regret: the mean over draws of its cost above the draw's best, in the metric's unit."""

    realised: float
    """Its measured cost above that of the best."""

    equal: float
    """The same of the mixture nearest to equal weights."""


def back_test_advice(observations: Observations, want: Want, *, refits: int = 50) -> AdviceTest:
    """Advise from the models below the largest size, and judge the advice by those of it.

    Only mixtures that were trained at the largest size are advised, so that nothing is interpolated. The
    measured regret holds the noise of the best mixture's losses, too.

    Args:
        observations: The losses.
        want: What is wanted; the aim `mean` or `worst`.
        refits: The number of draws.

    Raises:
        TableError: If no size has three mixtures, or nothing can be predicted from the smaller models.
    """
    measured = measured_costs(observations, want)
    frame = observations.frame
    below = replace(observations, frame=frame[frame["size"] < measured.size].reset_index(drop=True))
    if below.frame.empty:
        raise TableError(f"{observations.source}: one size.")
    forecasted = forecast(below, size=measured.size, tokens=measured.tokens, refits=refits)
    if forecasted.sources != measured.sources or forecasted.tasks != list(want.importance):
        raise TableError(f"{observations.source}: smaller models have other tasks.")
    losses = forecasted.sign * forecasted.losses(measured.mixtures)
    costs = want.costs(losses, np.zeros((len(losses), 1)), forecasted.tasks)
    choice = int(costs.mean(axis=0).argmin())
    equal = measured.nearest(dict.fromkeys(measured.sources, 1 / len(measured.sources)))
    above = measured.costs - measured.costs.min()
    return AdviceTest(
        size=measured.size, count=len(above), realised=float(above[choice]), equal=float(above[equal]),
        weights=dict(zip(measured.sources, measured.mixtures[choice].tolist(), strict=True)),
        stated=float(np.mean(costs[:, choice] - costs.min(axis=1))),
    )  # fmt: skip
