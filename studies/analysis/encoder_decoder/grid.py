"""The law of encoder and decoder apart, against the law of all parameters together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import LawFit, ResidualBootstrap, fit
from mnmt_laws.answers.comparison.evidence import criteria_of
from mnmt_laws.arrays import Array
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import (
    Chart,
    color,
    count_axis,
    ramp,
    styled,
    value_axis,
)
from mnmt_laws.laws import LawName

LAWS: tuple[LawName, ...] = ("bivariate", "power")
_DEPTHS = r"^e(?P<encoder_layers>\d+)d(?P<decoder_layers>\d+)_"
_NO_REFITS = ResidualBootstrap(refits=0)


def read_grid(table: Path) -> pd.DataFrame:
    """Return the losses of a table, with the number of layers that a run's name tells."""
    rows = pd.read_csv(table)
    return rows[rows["metric"].eq("loss")].join(rows["run"].str.extract(_DEPTHS).astype(int))


def compare_laws(rows: pd.DataFrame, testset: str, refits: int) -> tuple[LawFit, list[Figures]]:
    """Fit both laws; return the fit of the bivariate one, and a row for each task and law.

    A row has the law's BIC, its root mean square relative error on the models that it is fitted to, and that
    on each model when it is left out.
    """
    fits = {
        name: fit(rows, law=name, testset=testset, uncertainty=ResidualBootstrap(refits=refits))
        for name in LAWS
    }
    table = []
    for name, fitted in fits.items():
        errors = left_out_errors(rows, name, testset)
        for task in fitted.tasks:
            criteria = criteria_of(fitted, task, name)
            out = errors.loc[errors["task"].eq(task), "error"].to_numpy(float)
            table.append({
                "testset": testset, "task": task, "law": name, "bic": criteria["bic"],
                "scatter": criteria["scatter"], "left_out": float(np.sqrt(np.mean(out**2))),
            })  # fmt: skip
    return fits["bivariate"], table


def left_out_errors(rows: pd.DataFrame, law: LawName, testset: str) -> pd.DataFrame:
    """Return the relative error of a law on each model, fitted to models of other depths alone.

    Columns: `run`, `task` and `error`.
    """
    some = rows[rows["testset"].eq(testset)]
    depths = some["encoder_layers"].astype(str) + "-" + some["decoder_layers"].astype(str)
    return pd.DataFrame([
        row for value in depths.unique() for row in _errors_without(depths.eq(value), some, law)
    ])  # fmt: skip


def _errors_without(is_out: pd.Series, rows: pd.DataFrame, law: LawName) -> Iterator[Figures]:
    fitted = fit(rows[~is_out], law=law, uncertainty=_NO_REFITS)
    for row in rows[is_out].to_dict("records"):
        at = {name: row[name] for name in fitted.law.predictors if name != "weight"}
        predicted = float(fitted.predict(task=row["task"], weight=row["weight"], **at))
        yield {"run": row["run"], "task": row["task"], "error": predicted / row["value"] - 1}


def law_rows(fitted: LawFit, testset: str) -> list[Figures]:
    """Return exponents, L∞ and the encoder's best share α_e / (α_e + α_d) of N, with 95% intervals."""
    rows = []
    for task in fitted.tasks:
        values, draws = (frame.sel(task=task) for frame in (fitted.parameters, fitted.draws))
        row: Figures = {"testset": testset, "task": task}
        for name in ("alpha_e", "alpha_d", "l_inf"):
            row |= _interval(name, float(values[name]), draws[name].to_numpy())
        share = draws["alpha_e"] / (draws["alpha_e"] + draws["alpha_d"])
        best = float(values["alpha_e"] / (values["alpha_e"] + values["alpha_d"]))
        rows.append(row | _interval("share", best, share.to_numpy()))
    return rows


def _interval(name: str, value: float, draws: Array) -> Figures:
    low, high = np.quantile(draws, [0.025, 0.975], method="weibull") if len(draws) else (np.nan, np.nan)
    return {name: value, f"{name}_lower": float(low), f"{name}_upper": float(high)}


def swaps(rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each two depths the loss of the deeper encoder less that of the deeper decoder.

    Columns: `testset`, `task`, `deep`, `shallow`, `difference` (nats per token, the mean over seeds),
    `spread` (its standard deviation over seeds), `seeds` (their number) and `sizes` (ratio of their N).
    """
    keys = ["testset", "task", "seed", "encoder_layers", "decoder_layers"]
    frame = rows[[*keys, "value", "size"]]
    mirrored = frame.rename(columns={"encoder_layers": "decoder_layers", "decoder_layers": "encoder_layers"})
    pairs = frame.merge(mirrored, on=keys, suffixes=("", "_mirrored"))
    pairs = pairs[pairs["encoder_layers"] > pairs["decoder_layers"]]
    pairs = pairs.assign(
        difference=pairs["value"] - pairs["value_mirrored"], sizes=pairs["size"] / pairs["size_mirrored"]
    ).rename(columns={"encoder_layers": "deep", "decoder_layers": "shallow"})
    cells = pairs.groupby(["testset", "task", "deep", "shallow", "sizes"])["difference"]
    return cells.agg(difference="mean", spread="std", seeds="count").reset_index()


_POINTS = 30  # of a line


def draw_grid(rows: pd.DataFrame, fitted: LawFit) -> Chart:
    """Draw losses over the decoder's size, a line of the bivariate law for each encoder, a panel a task."""
    return styled(
        *(_grid_panel(rows[rows["task"].eq(task)], fitted, task) for task in fitted.tasks), columns=2
    )


def _grid_panel(rows: pd.DataFrame, fitted: LawFit, task: str) -> alt.LayerChart:
    order = rows.drop_duplicates("encoder_layers").sort_values("encoder_layers")
    labels = {layers: f"encoder of {layers}" for layers in order["encoder_layers"]}
    span = np.geomspace(rows["decoder_size"].min(), rows["decoder_size"].max(), _POINTS)
    lines = pd.concat(
        pd.DataFrame({
            "decoder_size": span, "label": labels[layers], "line": labels[layers],
            "value": fitted.predict(task=task, encoder_size=size, decoder_size=span),
        })
        for layers, size in zip(order["encoder_layers"], order["encoder_size"], strict=True)
    )  # fmt: skip
    points = marks.describe(rows, label=rows["encoder_layers"].map(labels), kind="trained")
    points = points[["run", "decoder_size", "value", "label", "kind"]].assign(first=points["decoder_size"])
    layers = [marks.lines(lines), marks.points(points, value="loss", decoder_size="decoder size")]
    x = count_axis("decoder_size", span, "decoder size (parameters)")
    y = value_axis("value", pd.concat([rows["value"], lines["value"]]), "loss (nats per token)", log=False)
    key = color("label", [*labels.values()], ramp(len(labels)))
    return marks.panel(*layers, x=x, y=y, color=key, title=task)
