"""Figures of the nine models: colours are the paper's architectures, dashes their Deep ones."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.style import TASK_COLORS, Chart, color, count_axis, dashes, styled, value_axis
from studies.analysis.architectures.gaps import MEANS, gaps_to_encdec
from studies.analysis.architectures.laws import fit_models, predict
from studies.analysis.architectures.models import ARCHITECTURES, ENCDEC, MODELS, architecture_of

_TITLES = {"size": SIZE_TITLE, "flops": "training compute C (FLOPs)"}
_COLORS = [TASK_COLORS[number] for number in (0, 1, 2, 3, 5)]


def draw_gaps(losses: pd.DataFrame) -> Chart:
    """Draw the gaps of two groups to the encoder-decoder of equal size and of equal FLOPs."""
    return styled(*(_gaps_panel(gaps_to_encdec(losses, predictor=name), name) for name in _TITLES), columns=2)


def _gaps_panel(gaps: pd.DataFrame, predictor: str) -> alt.LayerChart:
    group = {model: name for name, models in MEANS.items() for model in (name, *models)}
    frame = marks.describe(gaps, line=gaps["model"], task=gaps["model"].map(group), kind="trained")
    is_mean = frame["line"].isin(MEANS)
    means, ends = frame[is_mean], [frame[predictor].min(), frame[predictor].max()]
    lines = frame[[predictor, "value", "line", "task"]]
    layers = [
        marks.reference(**{predictor: ends}, value=[0.0, 0.0]),
        marks.lines(lines[~is_mean], interpolate="linear", opacity=0.35, strokeWidth=1.0),
        marks.lines(lines[is_mean], interpolate="linear"),
        *marks.bars(means),
        marks.points(means, task="mean of", value="gap"),
    ]
    x = count_axis(predictor, ends, _TITLES[predictor])
    values = [*means["lower"], *means["upper"], *frame["value"], 0.0]
    y = value_axis("value", values, "loss minus EncDec's (nats per token)", log=False)
    title = "at equal size" if predictor == "size" else "at equal FLOPs"
    return marks.panel(*layers, x=x, y=y, color=color("task", [*MEANS]), title=title)


def draw_laws(panels: Mapping[str, tuple[pd.DataFrame, str]]) -> Chart:
    """Draw losses with their laws, a panel for each title: rows, and over which predictor."""
    return styled(*(_laws_panel(title, *content) for title, content in panels.items()), columns=2)


def _laws_panel(title: str, losses: pd.DataFrame, predictor: str) -> alt.LayerChart:
    losses = losses.assign(size=losses[predictor])
    fitted = fit_models(losses, refits=0)
    spans = {
        model: np.geomspace(sizes.min(), sizes.max(), 30) for model, sizes in losses.groupby("model")["size"]
    }
    curves = pd.concat(
        pd.DataFrame({"size": span, "model": model, "value": predict(fitted, model, span)})
        for model, span in spans.items()
    )
    return _panel(losses, curves, title, "loss (nats per token)", x_title=_TITLES[predictor])


def draw_scores(panels: Mapping[str, tuple[pd.DataFrame, str]]) -> Chart:
    """Draw values over size, a panel for each title: rows, and what their values are."""
    return styled(*(_panel(rows, rows, title, what) for title, (rows, what) in panels.items()), columns=2)


def _panel(
    rows: pd.DataFrame, lines: pd.DataFrame, title: str, what: str, *, x_title: str = SIZE_TITLE
) -> alt.LayerChart:
    """Return points with intervals over size, and a line for each model.

    Args:
        rows: Columns `model`, `size`, `value`, `lower` and `upper`, none below 0.
        lines: Columns `model`, `size` and `value`.
        title: The panel's title.
        what: The values, with their unit.
        x_title: The size, or what stands for it.
    """
    frame = marks.describe(_split(rows.assign(lower=rows["lower"].clip(lower=0.0))), kind="trained")
    dash = dashes("kind", {"Wide": marks.SOLID, "Deep": marks.DASHED})
    curves = _split(lines)[["size", "value", "line", "task", "kind"]]
    layers = [
        marks.lines(curves, dash=dash, interpolate="linear"),
        *marks.bars(frame),
        marks.points(frame, line="model", task="architecture", value=what),
    ]
    x = count_axis("size", frame["size"], x_title)
    y = value_axis("value", frame[["value", "lower", "upper"]], what, log=False)
    return marks.panel(*layers, x=x, y=y, color=color("task", ARCHITECTURES, _COLORS), title=title)


def _split(rows: pd.DataFrame) -> pd.DataFrame:
    """Add `line` (the model), `task` (its architecture) and `kind`, Deep or Wide as the EncDec."""
    shape = np.where(rows["model"].str.endswith("Deep"), "Deep", "Wide")
    return rows.assign(line=rows["model"], task=architecture_of(rows["model"]), kind=shape)


def draw_exponents(table: pd.DataFrame) -> Chart:
    """Draw every model's exponent over the encoder-decoder's in each setting, with intervals."""
    models = [name for name in MODELS.values() if name != ENCDEC]
    rows = _split(table[table["model"].isin(models)])
    base = alt.Chart(marks.data(rows)).encode(xOffset=alt.XOffset("model:N", sort=models))
    bars = base.mark_rule(opacity=0.5).encode(y="relative_lower:Q", y2="relative_upper:Q")
    tips = {"model": "model", "setting": "sentences", "relative": "ratio", "relative_lower": "from",
            "relative_upper": "to", "exponent": "exponent p"}  # fmt: skip
    points = marks.with_tooltips(base.mark_point(size=35), rows, tips)
    settings = [*dict.fromkeys(rows["setting"])]
    x = alt.X("setting:N", title="test sentences", sort=settings, axis=alt.Axis(labelAngle=0))
    y = value_axis(
        "relative", rows[["relative_lower", "relative_upper"]], "exponent over EncDec's", log=False
    )
    key = color("task", ARCHITECTURES[1:], _COLORS[1:])
    return styled(marks.panel(bars, points, x=x, y=y, color=key, width=760, height=260))
