"""Translation quality against loss."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.style import (
    Chart,
    across,
    color,
    styled,
    value_axis,
)
from mnmt_laws.tables.metrics import LOSS

QUALITY_NAMES = {
    "bleu": "BLEU", "chrf": "chrF", "chrf++": "chrF++", "bleurt": "BLEURT", "comet": "COMET",
    "language": "language accuracy",
}  # fmt: skip


def draw_quality(quality: pd.DataFrame, metric: str, lines: pd.DataFrame | None = None) -> Chart:
    """Draw a quality metric against loss, a point for each run and task, with the line of each task.

    Args:
        quality: Columns `task`, `loss` and `metric`; `attrs["unit"]` is the unit of `loss`, by default nats
            per token.
        metric: A column of it.
        lines: Metric = intercept + slope · loss: columns `task`, `slope`, `intercept` and `r`.
    """
    pairs = quality.dropna(subset=["loss", metric])
    known = {} if lines is None else lines.set_index("task").to_dict("index")
    labels = {task: _quality_label(task, known.get(task)) for task in sorted(pairs["task"].unique())}
    rows = marks.describe(pairs, label=pairs["task"].map(labels), value=pairs[metric], kind="trained")
    name = QUALITY_NAMES.get(metric, metric)
    ends = [_ends(part, known[task]) for task, part in rows.groupby("task") if task in known]
    layers = [
        *([marks.lines(pd.concat(ends))] if ends else []),
        marks.points(rows, label="", loss="loss", value=name),
    ]
    y, x = (
        value_axis("value", rows["value"], name, log=False),
        value_axis("loss", rows["loss"], f"loss ({quality.attrs.get('unit', LOSS.unit)})"),
    )
    return styled(marks.panel(*layers, x=across(x), y=y, color=color("label", [*labels.values()])))


def _quality_label(task: str, line: Mapping[Hashable, Any] | None) -> str:
    return task if line is None else f"{task}, r = {line['r']:.3f}".replace("-0", "−0")


def _ends(rows: pd.DataFrame, line: Mapping[Hashable, Any]) -> pd.DataFrame:
    losses, label = np.array([rows["loss"].min(), rows["loss"].max()]), rows["label"].iloc[0]
    value = line["intercept"] + line["slope"] * losses
    return pd.DataFrame({"loss": losses, "value": value, "label": label, "line": label})
