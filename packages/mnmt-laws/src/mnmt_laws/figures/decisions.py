"""The trade-off frontier of two tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.answers.frontier import frontier, observed_pairs
from mnmt_laws.errors import TableError
from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import size_label
from mnmt_laws.figures.style import (
    Chart,
    across,
    color,
    ramp,
    styled,
    value_axis,
)
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.forecasts.forecast import Forecast, forecast_of
from mnmt_laws.tables.observations import Observations

_MOST_BANDS = 3  # more of them would hide each other; then only the largest size has one
_SAME_LENGTH = 0.05  # runs of equal steps differ a little in their tokens


def draw_frontier(source: LawFit | Forecast, *, sizes: Sequence[float], **length: Any) -> Chart:
    """Draw predicted frontiers as lines and measured models as points; hollow ones were held out.

    Bands are 95% intervals of the draws. Beside the points of the largest size is the first task's weight.

    Args:
        source: A forecast, or a fit of a law that predicts any mixture, of two tasks.
        sizes: N of each line, parameters.
        **length: `tokens`, where the law knows the training length; models of other lengths are not drawn.

    Raises:
        TableError: If it does not hold two tasks and two sources.
    """
    forecast = source if isinstance(source, Forecast) else forecast_of(source)
    first, second = _two_tasks(forecast)
    observations = _trained_for(forecast.observations, **length)
    results = {size_label(size): frontier(forecast, size=size, **length) for size in sorted(sizes)}
    lines = pd.concat([_points_of(result, name) for name, result in results.items()])
    pairs = observed_pairs(observations).rename(columns={first: "first", second: "second"})
    pairs = pairs[pairs["size"].isin(sizes)]
    pairs = marks.describe(pairs, line=pairs["size"].map(size_label))
    banded = list(results.items()) if len(results) <= _MOST_BANDS else [list(results.items())[-1]]
    outlines = [_outline(result, name) for name, result in banded if bool(result.lower.notnull().all())]
    extent, metric = (
        pd.concat([lines, pairs, *outlines]),
        f"{observations.metric} ({observations.unit})",
    )
    x, y = (
        value_axis(field, extent[field], f"{task} {metric}")
        for field, task in (("first", first), ("second", second))
    )
    titles = {"line": "size", "weight": f"weight of {first}"}
    predicted, measured = ({**titles, "first": f"{word} {first}", "second": f"{word} {second}"}
                           for word in ("predicted", "measured"))  # fmt: skip
    curves = marks.with_tooltips(marks.lines(lines).encode(order="weight:Q"), lines, predicted)
    layers = [*map(_band, outlines), curves, marks.points(pairs, kinds=marks.KINDS, **measured)]
    layers.append(_weights(pairs[pairs["size"].eq(max(sizes))]))
    key = color("line", list(results), ramp(len(results)))
    return styled(marks.panel(*layers, x=across(x), y=y, color=key, height=360))


def _weights(pairs: pd.DataFrame) -> alt.Chart:
    """Return the first task's weight beside each point."""
    labels = alt.Chart(marks.data(pairs[["first", "second", "weight", "line"]])).mark_text(dx=8, align="left")
    text: alt.Chart = labels.encode(text=alt.Text("weight:Q", format=".2~f"))
    return text


def _trained_for(observations: Observations, tokens: float | None = None) -> Observations:
    """Return the observations after about `tokens` tokens."""
    if tokens is None:
        return observations
    frame = observations.frame
    return replace(observations, frame=frame[np.isclose(frame["tokens"], tokens, rtol=_SAME_LENGTH)])


def _two_tasks(forecast: Forecast) -> tuple[str, str]:
    if len(forecast.tasks) != 2 or len(forecast.sources) != 2:
        raise TableError(
            f"{forecast.observations.source}: a frontier is drawn of two tasks and sources, but there are "
            f"tasks {', '.join(forecast.tasks)} and sources {', '.join(forecast.sources)}."
        )
    return forecast.tasks[0], forecast.tasks[1]


def _points_of(result: xr.Dataset, line: str) -> pd.DataFrame:
    """Return every other point of a predicted frontier, which a line still joins smoothly."""
    first, second = result.value.to_numpy()
    weight = result.weight.to_numpy()[0]
    return pd.DataFrame({"first": first, "second": second, "weight": weight, "line": line}).iloc[::2]


def _outline(result: xr.Dataset, line: str) -> pd.DataFrame:
    """Return the outline of the area between the lower ends and the upper ends of both tasks."""
    low, high = (result[end].to_numpy()[:, ::4] for end in ("lower", "upper"))
    first, second = np.concatenate([low, high[:, ::-1]], axis=1)
    return pd.DataFrame({"first": first, "second": second, "line": line}).reset_index(names="order")


def _band(outline: pd.DataFrame) -> alt.Chart:
    area: alt.Chart = marks.lines(outline, interpolate="linear-closed", filled=True, opacity=0.2)
    return area.encode(order="order:Q")
