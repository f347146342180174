"""The law of Zhang et al. 2022, eq. 7, of every model, with one N_0, and its figure."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from mnmt_laws import LawFit, ResidualBootstrap, fit
from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.style import Chart, color, count_axis, styled, value_axis
from mnmt_laws.laws.power import Zhang

Predictor = Literal["size", "flops"]
_PARAMETERS = {"alpha": "factor", "exponent": "exponent", "l_inf": "l_inf"}
_TITLES = {"size": SIZE_TITLE, "flops": "training compute C (FLOPs)"}


def fit_architectures(
    rows: pd.DataFrame, *, n_0: float, refits: int, predictor: Predictor = "size"
) -> dict[str, LawFit]:
    """Fit L = α (N_0 / N)^p + L∞ to every model of a table of losses, by the column `model`.

    Args:
        rows: Losses.
        n_0: N_0, parameters or FLOPs: α is the reducible loss of a model of this size.
        refits: Refits for the intervals.
        predictor: What stands for N.
    """
    law = Zhang(predictor=predictor, n_0=n_0)
    return {
        str(name): fit(part.assign(metric="loss"), law=law, uncertainty=ResidualBootstrap(refits=refits))
        for name, part in rows.groupby("model")
    }


def parameters_of(fits: dict[str, LawFit]) -> pd.DataFrame:
    """Return a row for each task and model: α, p and L∞, each with the ends of its 95% interval."""
    rows = []
    for model, fitted in fits.items():
        interval = fitted.interval()
        for task in fitted.tasks:
            row: dict[str, object] = {"task": task, "architecture": model}
            for name, parameter in _PARAMETERS.items():
                low, high = interval[parameter].sel(task=task).to_numpy()
                row[name] = float(fitted.parameters[parameter].sel(task=task))
                row |= {f"{name}_lower": float(low), f"{name}_upper": float(high)}
            rows.append(row)
    return pd.DataFrame(rows).sort_values(["task", "architecture"], ignore_index=True)


def draw_architectures(fits: dict[str, LawFit], *, task: str, predictor: Predictor = "size") -> Chart:
    """Draw the models' losses on a task with their laws, over parameters or FLOPs."""
    parts = {}
    for name, fitted in fits.items():
        rows = fitted.rows[fitted.rows["task"] == task].reset_index(drop=True)
        parts[name] = marks.describe(
            rows, label=name, measured=rows["value"], predicted=fitted.predict(rows)
        ).reset_index(drop=True)
    rows = pd.concat(parts.values())
    span = (rows[predictor].min(), rows[predictor].max())
    lines = pd.concat(_line(part, predictor, fits[name], span) for name, part in parts.items())
    observations = next(iter(fits.values())).observations
    y = value_axis(
        "value", pd.concat([rows["value"], lines["value"]]), f"{observations.metric} ({observations.unit})"
    )
    points = marks.points(rows, label="architecture", flops="FLOPs C")
    x, key = count_axis(predictor, span, _TITLES[predictor]), color("label", [*fits])
    return styled(marks.panel(marks.lines(lines), points, x=x, y=y, color=key, title=task))


def _line(
    rows: pd.DataFrame, predictor: Predictor, fitted: LawFit, span: tuple[float, float]
) -> pd.DataFrame:
    points = pd.DataFrame({predictor: np.geomspace(*span, 30), "task": rows["task"].iloc[0], "weight": 1.0})
    return points.assign(
        value=fitted.predict(points), label=rows["label"].iloc[0], line=rows["label"].iloc[0]
    )
