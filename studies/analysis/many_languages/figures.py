"""The figures of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import MUTED, TASK_COLORS, Chart, color, count_axis, styled, value_axis
from studies.analysis.intervals import half_interval
from studies.analysis.many_languages.models import BILINGUAL, LANGUAGES, UPDATED

KINDS = {"dense": "dense", "moe16": "16 experts", UPDATED: "bilingual, small batches"}
ALONE = {BILINGUAL: "bilingual", UPDATED: KINDS[UPDATED]}
COLOURS = dict(zip(KINDS.values(), TASK_COLORS, strict=False))
GAIN = "gain over the language's own model (nats a token)"


def draw_gains(panels: Mapping[str, pd.DataFrame]) -> Chart:
    """Draw the gain of every language over its own model, most text first, a line for each kind of model.

    Args:
        panels: {title: rows of `gains`}.
    """
    every = pd.concat(panels.values())
    y = value_axis("value", [*every["lower"], *every["upper"], 0.0], GAIN, log=False)
    return styled(*(_gains_panel(rows, title, y) for title, rows in panels.items()), columns=2)


def _gains_panel(gains: pd.DataFrame, title: str, y: alt.Y) -> alt.LayerChart:
    rows = gains.sort_values("share", ascending=False).reset_index(drop=True)
    rows["line"] = rows["name"].str.replace(r", T = \d", "", regex=True).map(KINDS)
    rows["language"] = [
        f"{LANGUAGES[task]}, {share:.1%}" for task, share in zip(rows["task"], rows["share"], strict=True)
    ]
    axis = alt.Axis(labelAngle=-50, labelOverlap=False)
    order = [*dict.fromkeys(rows["language"])]
    x = alt.X("language:N", sort=order, title="language and its share of the text", axis=axis)
    base = alt.Chart(marks.data(rows))
    zero = marks.reference(language=order, value=[0.0] * len(order))
    bars = base.mark_rule(opacity=0.6).encode(y="lower:Q", y2="upper:Q")
    dots = marks.with_tooltips(base.mark_point(), rows, {"name": "model", "language": "language",
                                                         "value": "gain"})  # fmt: skip
    names = [name for name in COLOURS if rows["line"].eq(name).any()]
    key = color("line", names, [COLOURS[name] for name in names])
    lines = base.mark_line(strokeWidth=1.2)
    return marks.panel(zero, lines, bars, dots, x=x, y=y, color=key, width=380, title=title)


def draw_longer(lengths: Sequence[Figures]) -> Chart:
    """Draw the mean loss at T = 1 over FLOPs, and the means of twelve bilingual models."""
    frame = pd.DataFrame(lengths).rename(columns={"mean": "value"})
    baselines = frame.set_index("model")["value"]
    frame["line"] = frame["model"].str.removesuffix(", T = 1").map(KINDS)
    frame = frame[frame["line"].notna() & frame["model"].ne(UPDATED)].assign(kind="trained")
    variance = float(np.mean([np.var(seeds, ddof=1) / len(seeds) for seeds in frame["by_seed"]]))
    half = half_interval(variance, len(frame))
    frame = frame.assign(lower=frame["value"] - half, upper=frame["value"] + half)
    x = count_axis("flops", frame["flops"], "FLOPs of the training")
    y = value_axis("value", [*frame["lower"], *frame["upper"]], "mean test loss (nats a token)", log=False)
    span = [frame["flops"].min(), frame["flops"].max()]
    layers = [
        *(marks.reference(line, flops=span, value=[baselines[name]] * 2) for name, line in ALONE.items()),
        marks.lines(frame[["flops", "value", "line"]], interpolate="linear"), *marks.bars(frame),
        marks.points(frame, line="model", steps="steps", value="mean loss", delta="worse than bilingual"),
    ]  # fmt: skip
    colours = COLOURS | {ALONE[BILINGUAL]: MUTED}
    key = color("line", [*colours], [*colours.values()])
    title = "T = 1; dashed: twelve bilingual models together"
    return styled(marks.panel(*layers, x=x, y=y, color=key, width=420, title=title))


def draw_experts(shares: pd.DataFrame) -> Chart:
    """Draw the share of each expert in the choices of each language, a panel for encoder and decoder.

    Args:
        shares: Rows of experts.csv of one model.
    """
    layers = shares.groupby("layer", sort=False)
    return styled(*(_experts_panel(rows, str(layer)) for layer, rows in layers), columns=2)


def _experts_panel(rows: pd.DataFrame, layer: str) -> alt.Chart:
    rows = rows.assign(language=rows["task"].map(LANGUAGES))
    scale = alt.Scale(scheme="blues", domainMin=0)
    key = alt.Legend(title="share of the choices", format="~%")
    cells: alt.Chart = (
        alt.Chart(marks.data(rows)).mark_rect()
        .encode(
            x=alt.X("expert:O", title="expert", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("language:N", title="language", sort=list(dict.fromkeys(rows["language"]))),
            color=alt.Color("share:Q", scale=scale, legend=key),
        )
        .properties(width=300, height=240, title=f"{layer.replace(' ', ', layer ')}; T = 1, 400 steps")
    )  # fmt: skip
    return cells
