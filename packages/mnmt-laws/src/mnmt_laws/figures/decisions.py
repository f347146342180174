"""The trade-off frontier of two tasks, and the runs to train next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.answers.frontier import frontier
from mnmt_laws.answers.next_runs import Design
from mnmt_laws.errors import TableError
from mnmt_laws.figures.losses import SIZE_TITLE, size_label
from mnmt_laws.figures.points import (
    LARGE_RING,
    PREDICTED,
    data,
    describe,
    mark_points,
    marked_pairs,
    number_tip,
    text_tip,
)
from mnmt_laws.figures.style import (
    HEIGHT,
    MUTED,
    PAPER,
    TASK_COLORS,
    WIDTH,
    Chart,
    color,
    count_axis,
    ramp,
    styled,
    value_scale,
)
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.tables.observations import Observations

_MOST_BANDS = 3  # more of them would hide each other; then only the largest size has one


def draw_frontier(capacity: LawFit, *, sizes: Sequence[float], **length: Any) -> Chart:
    """Draw predicted frontiers as lines and measured models as points; hollow ones were held out.

    Bands are 95% intervals of the law and, lighter, of a new model where the frontier has them.

    Args:
        capacity: A fit of two tasks by a law that predicts any mixture.
        sizes: N of each line, parameters.
        **length: `tokens`, where the law knows the training length.

    Raises:
        TableError: If the fit does not hold two tasks.
    """
    first, second = _two_tasks(capacity)
    results = {size_label(size): frontier(capacity, size=size, **length) for size in sorted(sizes)}
    lines = pd.concat([_points_of(result, name) for name, result in results.items()])
    pairs = marked_pairs(capacity.observations)
    pairs = pairs[pairs["size"].isin(sizes)].rename(columns={first: "first", second: "second"})
    pairs = describe(pairs.assign(line=[size_label(size) for size in pairs["size"]]))
    observations = capacity.observations
    titles = [f"{task} {observations.metric} ({observations.unit})" for task in (first, second)]
    key = color("line", list(results), ramp(len(results)))
    banded = results if len(results) <= _MOST_BANDS else dict([list(results.items())[-1]])
    outlines = [
        (ends, _outline(result, name, ends))
        for ends in (PREDICTED, ("lower", "upper"))
        for name, result in banded.items()
        if ends[0] in result and bool(result[ends[0]].notnull().all())
    ]
    extent = pd.concat([lines, pairs, *(outline for _, outline in outlines)])
    x = alt.X("first:Q", title=titles[0], **value_scale(extent["first"]))
    y = alt.Y("second:Q", title=titles[1], **value_scale(extent["second"]))
    bands = [_band(outline, ends, x, y, key) for ends, outline in outlines]
    told = {"weight": f"weight of {first}", "first": f"predicted {first}", "second": f"predicted {second}"}
    tips = [text_tip("line", "size"), *(number_tip(field, title) for field, title in told.items())]
    curves = (
        alt.Chart(data(lines))
        .mark_line(clip=True)
        .encode(x=x, y=y, color=key, order="weight:Q", tooltip=tips)
    )
    points = mark_points(
        pairs, x, y, key, weight=f"weight of {first}", first=f"measured {first}", second=f"measured {second}"
    )
    return styled(alt.layer(*bands, curves, points).properties(width=WIDTH, height=360))


def _two_tasks(fit: LawFit) -> tuple[str, str]:
    if len(fit.tasks) != 2:
        raise TableError(
            f"{fit.observations.source}: a frontier is drawn of two tasks, but the table has "
            f"{len(fit.tasks)} ({', '.join(fit.tasks)})."
        )
    return fit.tasks[0], fit.tasks[1]


def _points_of(result: xr.Dataset, line: str) -> pd.DataFrame:
    """Return every other point of a predicted frontier, which a line still joins smoothly."""
    first, second = result.value.to_numpy()
    weight = result.weight.to_numpy()[0]
    return pd.DataFrame({"first": first, "second": second, "weight": weight, "line": line}).iloc[::2]


def _outline(result: xr.Dataset, line: str, ends: tuple[str, str]) -> pd.DataFrame:
    """Return the outline of the area between the lower ends and the upper ends of both tasks."""
    low, high = (result[end].to_numpy()[:, ::4] for end in ends)
    first, second = np.concatenate([low, high[:, ::-1]], axis=1)
    return pd.DataFrame({"first": first, "second": second, "line": line, "order": np.arange(len(first))})


def _band(outline: pd.DataFrame, ends: tuple[str, str], x: alt.X, y: alt.Y, key: alt.Color) -> alt.Chart:
    look = {"interpolate": "linear-closed", "filled": True, "clip": True}
    area = alt.Chart(data(outline)).mark_line(opacity=0.1 if ends == PREDICTED else 0.2, **look)
    return area.encode(x=x, y=y, color=key, order="order:Q")


def draw_design(design: Design, observations: Observations, *, task: str) -> Chart:
    """Draw trained runs as dots and proposed runs as numbered rings, over size and the task's weight.

    Runs in one place share a ring. The numbers are the order in which to train them.
    """
    trained = observations.frame[observations.frame["task"] == task]
    proposed = _proposed_runs(design, task)
    x = count_axis("size", pd.concat([trained["size"], proposed["size"]]), SIZE_TITLE)
    scale = alt.Scale(domain=[0, 1], nice=False, padding=10)
    y = alt.Y("weight:Q", title=f"weight p of {task}", scale=scale)
    key = color("kind", list(_KINDS), [MUTED, TASK_COLORS[1]])
    rows = pd.concat([part.assign(kind=kind) for kind, part in zip(_KINDS, (trained, proposed), strict=True)])
    points = mark_points(describe(rows), x, y, key, kinds=_KINDS, order="order")
    texts = alt.Chart(data(proposed)).encode(x=x, y=y, text="order:N")
    halo = texts.mark_text(align="left", dx=10, fontWeight="bold", fontSize=13, stroke=PAPER, strokeWidth=4)
    words = texts.mark_text(align="left", dx=10, fontWeight="bold", fontSize=13, color=TASK_COLORS[1])
    return styled(alt.layer(points, halo, words).properties(width=WIDTH, height=HEIGHT))


_KINDS = {"trained": "circle", "proposed, in this order": LARGE_RING}


def _proposed_runs(design: Design, task: str) -> pd.DataFrame:
    """Return `size`, `weight` of the task, mixture and `order` of the runs proposed at each place."""
    weights = [_weight_of(task, mixture) for mixture in design.runs["mixture"]]
    order = [str(number) for number in range(1, len(weights) + 1)]
    runs = design.runs[["size", "mixture"]].assign(weight=weights, order=order)
    return runs.groupby(["size", "weight"], as_index=False).agg({"order": ", ".join, "mixture": "first"})


def _weight_of(task: str, mixture: str) -> float:
    """Return a task's weight in `TASK:WEIGHT` items, which are rounded and need not sum to 1."""
    items = (item.rsplit(":", 1) for item in mixture.split(","))
    return next((float(weight) for name, weight in items if name == task), 0.0)
