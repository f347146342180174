"""Figures of the nine models: colours are the paper's architectures, dashes their Deep ones."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.style import TASK_COLORS, Chart, across, color, count_axis, dashes, styled, value_axis
from studies.analysis.architectures.gaps import MEANS
from studies.analysis.architectures.laws import fit_models, predict
from studies.analysis.architectures.models import ARCHITECTURES, ENCDEC, MODELS, architecture_of

_TITLES = {"size": SIZE_TITLE, "flops": "training compute C (FLOPs)", "width": "layers in total"}
LOSS, GAP, BLEU = "loss (nats per token)", "loss minus EncDec's (nats per token)", "BLEU"
_COLORS = [TASK_COLORS[number] for number in (0, 1, 2, 3, 5)]


def draw_panels(panels: Mapping[str, tuple[pd.DataFrame, str, str]], *, laws: bool = False) -> Chart:
    """Draw values of models, a panel for each title, with lines between them or their laws.

    Args:
        panels: {title: rows of `read_losses` or `gaps_to_encdec`, what their values are, the column across}.
        laws: Draw the laws.
    """
    charts = [_panel(title, *content, laws=laws) for title, content in panels.items()]
    return styled(*charts, columns=min(len(charts), 2))


def _panel(title: str, rows: pd.DataFrame, what: str, over: str, *, laws: bool) -> alt.LayerChart:
    rows = rows[~rows["model"].isin(MEANS)]
    rows = rows.assign(size=rows[over], lower=rows["lower"] if what == GAP else rows["lower"].clip(lower=0.0))
    curves = _split(_curves(rows) if laws else rows)[["size", "value", "line", "task", "kind"]]
    frame = marks.describe(_split(rows), kind="trained")
    ends = [frame["size"].min(), frame["size"].max()]
    dash = dashes("kind", {"Wide": marks.SOLID, "Deep": marks.DASHED})
    layers = [
        *([marks.reference(size=ends, value=[0.0, 0.0])] if what == GAP else []),
        marks.lines(curves, dash=dash, interpolate="linear"),
        *marks.bars(frame),
        marks.points(frame, line="model", task="architecture", value=what),
    ]
    y = value_axis("value", frame[["value", "lower", "upper"]], what, log=False)
    counted = count_axis("size", ends, _TITLES[over])
    x = across(value_axis("size", ends, _TITLES[over], log=False)) if over == "width" else counted
    return marks.panel(*layers, x=x, y=y, color=color("task", ARCHITECTURES, _COLORS), title=title)


def _curves(losses: pd.DataFrame) -> pd.DataFrame:
    """Return the losses of each model's law over its sizes."""
    fitted, parts = fit_models(losses, refits=0), []
    for model, sizes in losses.groupby("model")["size"]:
        span = np.geomspace(sizes.min(), sizes.max(), 30)
        parts.append(pd.DataFrame({"size": span, "model": model, "value": predict(fitted, str(model), span)}))
    return pd.concat(parts)


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
    axis = alt.Axis(labelAngle=0, labelOverlap=False, labelExpr="split(datum.label, ', ')")
    x = alt.X("setting:N", title="test sentences at rate .05, and all", sort=settings, axis=axis)
    y = value_axis(
        "relative", rows[["relative_lower", "relative_upper"]], "exponent over EncDec's", log=False
    )
    key = color("task", ARCHITECTURES[1:], _COLORS[1:])
    return styled(marks.panel(bars, points, x=x, y=y, color=key, width=760, height=260))
