"""The law of encoder and decoder apart, against the law of all parameters together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import LawFit, ResidualBootstrap, fit
from mnmt_laws.arrays import Array
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import Chart, color, count_axis, ramp, styled, value_axis
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.laws import LawName
from studies.analysis.encoder_decoder.choices import mean_of

LAWS: tuple[LawName, ...] = ("bivariate", "power")
_DEPTHS = r"^e(?P<encoder_layers>\d+)d(?P<decoder_layers>\d+)_"
SIZES = ["encoder_size", "decoder_size"]
_NO_REFITS = ResidualBootstrap(refits=0)


def read_grid(table: Path) -> pd.DataFrame:
    """Return the losses of a table, with the number of layers that a run's name tells."""
    rows = pd.read_csv(table)
    return rows[rows["metric"].eq("loss")].join(rows["run"].str.extract(_DEPTHS).astype(int))


def fit_grid(rows: pd.DataFrame, testset: str, refits: int) -> LawFit:
    """Fit the law of encoder and decoder to the losses on one test set."""
    uncertainty = ResidualBootstrap(refits=refits)
    return fit(rows, law="bivariate", testset=testset, prior="none", uncertainty=uncertainty)


def contest(rows: pd.DataFrame, testset: str) -> Iterator[Figures]:
    """Yield for each task the root mean square relative error of four predictions of depths left out.

    They are both laws, a line (a plane in the logarithms of both sizes and of the loss), and interpolation
    between the neighbouring depths. The four corners, which have none, are never left out.
    """
    some = rows[rows["testset"].eq(testset)]
    layers = some[["encoder_layers", "decoder_layers"]]
    inner = some[~(layers.eq(layers.min()) | layers.eq(layers.max())).all(axis=1)]
    errors = pd.DataFrame(
        [row for run in inner["run"].unique() for row in _errors_without(some["run"].eq(run), some)]
    )
    for task, part in errors.groupby("task"):
        squares = part.drop(columns="task") ** 2
        yield {"testset": testset, "task": task, **(squares.mean() ** 0.5), "models": len(part)}


def _errors_without(is_out: pd.Series, rows: pd.DataFrame) -> Iterator[Figures]:
    fits = {name: fit(rows[~is_out], law=name, prior="none", uncertainty=_NO_REFITS) for name in LAWS}
    for row in rows[is_out].to_dict("records"):
        rest = rows[~is_out & rows["task"].eq(row["task"])]
        predicted = _by_rulers(rest, row)
        for name, fitted in fits.items():
            at = {key: row[key] for key in fitted.law.predictors if key != "weight"}
            predicted[name] = float(fitted.predict(task=row["task"], weight=row["weight"], **at))
        yield {"task": row["task"], **{name: value / row["value"] - 1 for name, value in predicted.items()}}


def _by_rulers(rest: pd.DataFrame, row: Mapping[Hashable, Any]) -> dict[str, float]:
    """Return a loss by the plane through all other depths, and by interpolation along both axes."""
    logs = np.log(rest[[*SIZES, "value"]].astype(float))
    plane, *_ = np.linalg.lstsq(np.column_stack([np.ones(len(logs)), logs[SIZES]]), logs["value"])
    place = np.log([row[name] for name in SIZES])
    between = []
    for axis, other in ((0, 1), (1, 0)):
        line = logs[rest[SIZES[other]].eq(row[SIZES[other]])].sort_values(SIZES[axis])
        x, y = line[SIZES[axis]], line["value"]
        between.append(np.interp(place[axis], x, y, left=np.nan, right=np.nan))
    return {
        "line": float(np.exp(plane[0] + plane[1:] @ place)),
        "interpolation": float(np.exp(np.nanmean(between))),
    }


def law_rows(fitted: LawFit, testset: str) -> list[Figures]:
    """Return exponents, L∞ and the encoder's best share α_e / (α_e + α_d) of N, with 95% intervals."""
    rows = []
    for task in fitted.tasks:
        values, draws = (frame.sel(task=task) for frame in (fitted.parameters, fitted.draws))
        values, draws = (
            each.assign(share=each.alpha_e / (each.alpha_e + each.alpha_d)) for each in (values, draws)
        )
        row: Figures = {"testset": testset, "task": task}
        for name in ("alpha_e", "alpha_d", "l_inf", "share"):
            low, high = bounds_of(draws[name].to_numpy())
            row |= {name: float(values[name]), f"{name}_lower": float(low), f"{name}_upper": float(high)}
        rows.append(row)
    return rows


def depth_effects(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield differences of loss between depths, nats a token, with Student's 95% intervals over pairs.

    `by_size` is what the models' sizes explain, by a line through loss over log N.
    """
    for (testset, task), some in rows.groupby(["testset", "task"]):
        slope = float(np.polyfit(np.log(some["size"]), some["value"], 1)[0])
        sizes = dict(_contrasts(some.assign(size=np.log(some["size"])), "size"))
        for name, values in _contrasts(some, "value"):
            row = {"testset": testset, "task": task, "contrast": name, **mean_of(pd.Series(values))}
            yield row | {"by_size": slope * float(sizes[name].mean())}


def _contrasts(rows: pd.DataFrame, column: str) -> Iterator[tuple[str, Array]]:
    """Yield differences of swapped depths, and of most and fewest layers at each depth of the other side."""
    table = rows.pivot(index="encoder_layers", columns="decoder_layers", values=column)
    values, most, fewest = table.to_numpy(), table.index.max(), table.index.min()
    yield "deeper encoder minus deeper decoder", (values - values.T)[np.tril_indices(len(values), -1)]
    yield f"{most} encoder layers minus {fewest}", values[-1] - values[0]
    yield f"{most} decoder layers minus {fewest}", values[:, -1] - values[:, 0]


_POINTS = 30  # of a line


def draw_grid(rows: pd.DataFrame, fitted: LawFit, half: float) -> Chart:
    """Draw losses over the decoder's size, a line of the bivariate law for each encoder, a panel a task.

    Args:
        rows: One run for each two depths.
        fitted: The law.
        half: Half of the 95% interval of one run.
    """
    rows = rows.assign(lower=rows["value"] - half, upper=rows["value"] + half)
    return styled(
        *(_grid_panel(rows[rows["task"].eq(task)], fitted, task) for task in fitted.tasks), columns=2
    )


def _grid_panel(rows: pd.DataFrame, fitted: LawFit, task: str) -> alt.LayerChart:
    order = rows.drop_duplicates("encoder_layers").sort_values("encoder_layers")
    labels = {layers: f"encoder layers: {layers}" for layers in order["encoder_layers"]}
    span = np.geomspace(rows["decoder_size"].min(), rows["decoder_size"].max(), _POINTS)
    lines = pd.concat(
        pd.DataFrame({
            "decoder_size": span, "label": labels[layers], "line": labels[layers],
            "value": fitted.predict(task=task, encoder_size=size, decoder_size=span),
        })
        for layers, size in zip(order["encoder_layers"], order["encoder_size"], strict=True)
    )  # fmt: skip
    apart = 1 + 0.03 * (rows["encoder_layers"].rank(method="dense") - 2.5)
    rows = rows.assign(decoder_size=rows["decoder_size"] * apart)
    points = marks.describe(rows, label=rows["encoder_layers"].map(labels), kind="trained")
    base = alt.Chart(marks.data(points[["decoder_size", "value", "label", "lower", "upper"]]))
    bars = base.mark_rule(opacity=0.5).encode(y="lower:Q", y2="upper:Q")
    points = points[["run", "decoder_size", "value", "label", "kind"]].assign(first=points["decoder_size"])
    layers = [marks.lines(lines), bars, marks.points(points, value="loss", decoder_size="decoder size")]
    x = count_axis("decoder_size", span, "decoder size (parameters)")
    y = value_axis("value", [*rows["lower"], *rows["upper"]], "loss (nats per token)", log=False)
    key = color("label", [*labels.values()], ramp(len(labels)))
    return marks.panel(*layers, x=x, y=y, color=key, title=f"{task}; lines: eq. 2; bars: 95% of a run")
