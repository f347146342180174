"""The law of encoder and decoder apart, against the law of all parameters together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import LawFit, ResidualBootstrap, fit
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import Chart, color, count_axis, ramp, styled, value_axis
from mnmt_laws.fitting.uncertainty import central_interval
from studies.analysis.intervals import means_of

_DEPTHS = r"^e(?P<encoder_layers>\d+)d(?P<decoder_layers>\d+)_"
SIZES = ["encoder_size", "decoder_size"]


def read_grid(table: Path) -> pd.DataFrame:
    """Return the losses of a table, with the number of layers that a run's name tells."""
    rows = pd.read_csv(table)
    return rows[rows["metric"].eq("loss")].join(rows["run"].str.extract(_DEPTHS).astype(int))


def fit_grid(rows: pd.DataFrame, testset: str, refits: int) -> LawFit:
    """Fit the law of encoder and decoder to the losses on one test set."""
    uncertainty = ResidualBootstrap(refits=refits)
    return fit(rows, law="bivariate", testset=testset, prior="none", uncertainty=uncertainty)


def contest(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield for each task the root mean square relative error of three predictions of depths left out.

    They are eq. 2, a line (a plane in the logarithms of both sizes and of the loss), and interpolation
    between the neighbouring depths. The four corners, which have none, are never left out.
    """
    layers = rows[["encoder_layers", "decoder_layers"]]
    is_corner = (layers.eq(layers.min()) | layers.eq(layers.max())).all(axis=1)
    for task, of_task in rows.groupby("task"):
        inner = of_task.index[~is_corner[of_task.index]]
        predicted = pd.DataFrame([predict(of_task, place) for place in inner], index=inner)
        errors = predicted.div(of_task["value"], axis=0).dropna() - 1
        yield {"task": task, **(errors**2).mean() ** 0.5, "models": len(errors)}


def predict(rows: pd.DataFrame, place: Hashable) -> dict[str, float]:
    """Return the loss of one run of a task by eq. 2 and by rulers, from all its others."""
    law = fit(rows.drop(place), law="bivariate", prior="none", uncertainty=ResidualBootstrap(refits=0))
    logs = np.log(rows[[*SIZES, "value"]])
    rest, (*sizes, _) = logs.drop(place), logs.loc[place]
    plane, *_ = np.linalg.lstsq(np.column_stack([np.ones(len(rest)), rest[SIZES]]), rest["value"])
    table = rest.pivot(index=SIZES[0], columns=SIZES[1], values="value")
    along = [axis.interpolate("index", limit_area="inside") for axis in (table, table.T)]
    between = np.nanmean([along[0].loc[*sizes], along[1].T.loc[*sizes]])
    return {
        "bivariate": float(law.predict(rows.loc[[place]])[0]),
        "line": float(np.exp(plane @ [1, *sizes])), "interpolation": float(np.exp(between)),
    }  # fmt: skip


def law_rows(fitted: LawFit, testset: str) -> Iterator[Figures]:
    """Yield exponents, L∞ and the encoder's best share α_e / (α_e + α_d) of N, with 95% intervals."""
    values, draws = (
        table.assign(share=table.alpha_e / (table.alpha_e + table.alpha_d))
        for table in (fitted.parameters, fitted.draws)
    )
    interval = central_interval(draws, 0.95)
    for task in fitted.tasks:
        row: Figures = {"testset": testset, "task": task}
        for name in ("alpha_e", "alpha_d", "l_inf", "share"):
            ends = interval[name].sel(task=task).to_numpy().tolist()
            row |= {name: float(values[name].sel(task=task)), f"{name}_interval": ends}
        yield row


def depth_effects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return differences of loss between depths, nats a token, with 95% intervals over pairs.

    `by_size` is what the models' sizes explain, by a line through loss over log N.
    """
    keys, parts = ["testset", "task", "contrast"], []
    for (testset, task), of_task in rows.groupby(keys[:2]):
        of_task = of_task.assign(log_size=np.log(of_task["size"]))
        slope, _ = np.polyfit(of_task["log_size"], of_task["value"], 1)
        pairs = pd.DataFrame({"value": contrasts(of_task, "value"), "size": contrasts(of_task, "log_size")})
        parts.append(pairs.assign(testset=testset, task=task, by_size=slope * pairs["size"]).reset_index())
    groups = pd.concat(parts).groupby(keys)
    return means_of(groups["value"]).assign(by_size=groups["by_size"].mean()).reset_index()


def contrasts(rows: pd.DataFrame, column: str) -> pd.Series:
    """Return differences of swapped depths, and of most and fewest layers at each depth of the other side."""
    table = rows.pivot(index="encoder_layers", columns="decoder_layers", values=column)
    values, most, fewest = table.to_numpy(), table.index.max(), table.index.min()
    differences = {
        "deeper encoder minus deeper decoder": (values - values.T)[np.tril_indices(len(values), -1)],
        f"{most} encoder layers minus {fewest}": values[-1] - values[0],
        f"{most} decoder layers minus {fewest}": values[:, -1] - values[:, 0],
    }
    return pd.concat(
        {name: pd.Series(each) for name, each in differences.items()}, names=["contrast", "pair"]
    )


def draw_grid(rows: pd.DataFrame, fitted: LawFit, half: float) -> Chart:
    """Draw losses over the decoder's size, a line of the bivariate law for each encoder, a panel a task.

    Args:
        rows: One run for each two depths.
        fitted: The law.
        half: Half of the 95% interval of one run.
    """
    rows = rows.assign(lower=rows["value"] - half, upper=rows["value"] + half, kind="trained")
    rows = rows.assign(line=[f"encoder layers: {layers}" for layers in rows["encoder_layers"]])
    rows = rows.sort_values("encoder_layers")
    return styled(*(_grid_panel(rows[rows["task"].eq(task)], fitted) for task in fitted.tasks), columns=2)


def _grid_panel(rows: pd.DataFrame, fitted: LawFit) -> alt.LayerChart:
    names, sizes = [*rows["line"].unique()], rows["decoder_size"]
    span = pd.DataFrame({"size": np.geomspace(sizes.min(), sizes.max(), 30)})
    lines = rows.drop_duplicates("line")[["task", "weight", "line", "encoder_size"]].merge(span, how="cross")
    lines["value"] = fitted.predict(lines.assign(decoder_size=lines["size"]))
    apart = 1 + 0.03 * (rows["encoder_layers"].rank(method="dense") - 2.5)
    rows = rows.assign(size=sizes * apart)
    x = count_axis("size", span["size"], "decoder size (parameters)")
    y = value_axis("value", [*rows["lower"], *rows["upper"]], "loss (nats per token)", log=False)
    return marks.panel(
        marks.lines(lines.drop(columns=["weight"])), *marks.bars(rows), marks.points(rows), x=x, y=y,
        color=color("line", names, ramp(len(names))), title=rows["task"].iloc[0],
    )  # fmt: skip
