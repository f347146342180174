"""The law of Zhang et al. 2022, eq. 7, of every model, with one N_0: its parameters, errors and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import altair as alt
import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import LawFit, ResidualBootstrap, fit
from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.style import Chart, color, count_axis, styled, value_axis
from mnmt_laws.laws.power import Zhang
from studies.analysis.architectures.gaps import line_through
from studies.analysis.architectures.models import ENCDEC, MODELS

_PARAMETERS = {"alpha": "factor", "exponent": "exponent", "l_inf": "l_inf"}

Fits = dict[str, LawFit]
"""{model: its law}."""


def fit_architectures(losses: pd.DataFrame, *, refits: int) -> Fits:
    """Fit L = α (N_0 / N)^p + L∞ to every model of a table of losses; N_0 is that of the smallest EncDec."""
    law = Zhang(n_0=float(losses.loc[losses["model"].eq(ENCDEC), "size"].min()))
    rows = losses.drop(columns=["lower", "upper"]).assign(metric="loss", weight=1.0)
    return {
        name: fit(
            rows[rows["model"].eq(name)], law=law, prior="none", uncertainty=ResidualBootstrap(refits=refits)
        )
        for name in MODELS.values()
    }


def parameters_of(fits: Mapping[str, Fits]) -> pd.DataFrame:
    """Return a row for each setting and model: α, p and L∞, each with the ends of its 95% interval."""
    rows = []
    for setting, by_model in fits.items():
        for model, fitted in by_model.items():
            row: Figures = {"setting": setting, "model": model}
            interval, task = fitted.interval(), fitted.tasks[0]
            for name, parameter in _PARAMETERS.items():
                low, high = interval[parameter].sel(task=task).to_numpy()
                row[name] = float(fitted.parameters[parameter].sel(task=task))
                row |= {f"{name}_lower": float(low), f"{name}_upper": float(high)}
            rows.append(row)
    return pd.DataFrame(rows)


def predictions(losses: pd.DataFrame) -> Iterator[Figures]:
    """Yield the median and the largest error over the models of one width, predicted by all others.

    Errors are relative. A line is fitted to the logarithms of size and loss; interpolation is between the
    neighbouring widths, and beyond the largest along the line through the last two.
    """
    widths = np.sort(losses["width"].unique())
    for width in (widths[len(widths) // 2], widths[-1]):
        rest, tried = losses[losses["width"].ne(width)], losses[losses["width"].eq(width)]
        fits = fit_architectures(rest, refits=0)
        errors = pd.DataFrame([
            _predict(fits[row.model], rest[rest["model"].eq(row.model)], row.size) / row.value - 1
            for row in tried.itertuples()
        ]).abs()  # fmt: skip
        median, largest = errors.median().add_prefix("median, "), errors.max().add_prefix("largest, ")
        yield {"width left out": int(width), "models": len(tried), **median, **largest}


def _predict(fitted: LawFit, rows: pd.DataFrame, size: float) -> pd.Series:
    rows = rows.sort_values("size")
    x, y, at = np.log(rows["size"].to_numpy(float)), np.log(rows["value"].to_numpy(float)), np.log(size)
    return pd.Series({
        "law": float(fitted.predict(task=fitted.tasks[0], weight=1.0, size=size)),
        "line": np.exp(np.polyval(np.polyfit(x, y, 1), at)),
        "interpolation": np.exp(line_through(x, y, np.array([at]))[0]),
    })  # fmt: skip


def draw_laws(settings: Mapping[str, pd.DataFrame], fits: Mapping[str, Fits]) -> Chart:
    """Draw the models' losses over size with their laws, a panel for each setting."""
    return styled(*(_laws_panel(losses, fits[name], name) for name, losses in settings.items()), columns=2)


def _laws_panel(losses: pd.DataFrame, fits: Fits, title: str) -> alt.LayerChart:
    rows = marks.describe(losses, line=losses["model"], kind="trained")
    span = np.geomspace(rows["size"].min(), rows["size"].max(), 30)
    lines = pd.concat(
        pd.DataFrame({
            "size": span, "line": name,
            "value": fitted.predict(task=fitted.tasks[0], weight=1.0, size=span),
        })
        for name, fitted in fits.items()
    )  # fmt: skip
    y = value_axis("value", pd.concat([rows["lower"], rows["upper"]]), "loss (nats per token)")
    layers = [marks.lines(lines), *marks.bars(rows), marks.points(rows, line="model", value="loss")]
    x, key = count_axis("size", span, SIZE_TITLE), color("line", [*fits])
    return marks.panel(*layers, x=x, y=y, color=key, title=title)


def draw_parameters(parameters: pd.DataFrame) -> Chart:
    """Draw exponent and irreducible loss of every model in each setting, with intervals."""
    titles = {"exponent": "exponent p", "l_inf": "irreducible loss L∞ (nats per token)"}
    return styled(*(_parameters_panel(parameters, name, title) for name, title in titles.items()), columns=1)


def _parameters_panel(parameters: pd.DataFrame, name: str, title: str) -> alt.LayerChart:
    rows = parameters.rename(columns={name: "value", f"{name}_lower": "low", f"{name}_upper": "high"})
    models = [*dict.fromkeys(rows["model"])]
    base = alt.Chart(marks.data(rows)).encode(xOffset=alt.XOffset("model:N", sort=models))
    bars = base.mark_rule(opacity=0.5).encode(y="low:Q", y2="high:Q")
    tips = {"model": "model", "setting": "sentences", "value": title, "low": "from", "high": "to"}
    points = marks.with_tooltips(base.mark_point(size=35), rows, tips)
    axis = alt.Axis(labelAngle=0)
    x = alt.X("setting:N", title="test sentences", sort=[*dict.fromkeys(rows["setting"])], axis=axis)
    y = alt.Y("value:Q", title=title)
    return marks.panel(bars, points, x=x, y=y, color=color("model", models), width=760, height=240)
