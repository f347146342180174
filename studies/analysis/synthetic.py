"""What advice was worth at the target size of studies/synthetic.toml: five mixtures there, three seeds each.

`runs.csv` is the study with the two models of its loop. `target.csv` is the `size` of `[goal]` at five
mixtures with `[sweep] seeds = [1, 2, 3]`.

    python -m studies.analysis.synthetic
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

import altair as alt
import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, run
from mnmt_laws import (
    Observations,
    Recommendation,
    ResidualBootstrap,
    compare_irreducible,
    fit,
    observe,
    predict_held_out,
    recommend,
)
from mnmt_laws.figures import draw_frontier, marks
from mnmt_laws.figures.style import INK, Chart, color, count_axis, ramp, styled, value_axis
from studies.analysis.intervals import half_of_a_run, pooled
from studies.analysis.rulers import draw_predictions, held_out_errors, with_rulers
from studies.page import PAGES, Answer, write_page

OUT = PAGES / "synthetic"
HARD, EASY = "xx-aa", "xx-bb"
IMPORTANCE = {HARD: 2.0, EASY: 1.0}
SHARES = pd.Series(IMPORTANCE) / sum(IMPORTANCE.values())
KINDS = {"trained": "circle", "trained after the prediction": marks.RING}
MEAN = "mean"


def main(*, refits: int = 200, out: Path = OUT) -> None:
    """Print and write what was advised and worth, errors of laws and rulers, and README's picture.

    Args:
        refits: Draws of the forecast.
        out: Folder for results.json and the figures.
    """
    study, everything = observe(OUT / "runs.csv", testset="test"), observe(with_target(), testset="test")
    target = everything.held_out
    advice = recommend(everything, size=float(target["size"].iloc[0]), preference=IMPORTANCE, refits=refits)
    law = fit(everything, law="capacity", uncertainty=ResidualBootstrap(refits=refits))
    held_out = predict_held_out(law)
    rows, costs = with_rulers(everything, held_out.rows), costs_of(target)
    results: dict[str, Answer] = {
        "target": by_mixture(costs, rows),
        "predicted": forecasts(advice),
        "reached": [gain(models, advice.weights[HARD]) for models in (costs, costs_of(study.held_out))],
        "irreducible": compare_irreducible(law),
        "held out": held_out_errors(everything, held_out),
    }
    charts = {
        "frontier": draw_target(advice, costs),
        "overview": draw_overview(study, half_of_a_run(np.log(costs[EASY]).groupby(level="hard"))),
        "predictions": draw_predictions(rows, rows["task"]),
    }
    write_page(out, results, charts)


def with_target() -> pd.DataFrame:
    """Return the fitted runs of the study, with the models of the target table held out."""
    study, target = pd.read_csv(OUT / "runs.csv"), pd.read_csv(OUT / "target.csv")
    return pd.concat([study[study["role"] == "fit"], target.assign(role="held-out")], ignore_index=True)


def costs_of(rows: pd.DataFrame, column: str = "value") -> pd.DataFrame:
    """Return the losses of every model and their mean by importance, by the weight of the harder task."""
    rows = rows.assign(hard=rows["mixture"].str.extract(rf"{HARD}:([\d.]+)")[0].astype(float))
    table = rows.pivot_table(index=["hard", "seed"], columns="task", values=column)
    return table.assign(mean=table[list(SHARES.index)] @ SHARES)


def by_mixture(costs: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means and the scatter of every mixture's models, and the mean that law and line predict."""
    groups = costs.groupby(level="hard")
    predicted = {
        f"mean by {name}": costs_of(rows.assign(seed=0), column)[MEAN].droplevel("seed")
        for name, column in (("the law", "predicted"), ("line", "line"))
    }  # NaN beyond the weights trained
    return (
        groups.mean().assign(scatter=groups[MEAN].std(), **predicted).reset_index(names=f"weight of {HARD}")
    )


def forecasts(advice: Recommendation) -> Iterator[Figures]:
    """Yield the advised weight with those that cost at most `amount` more, and what rules would cost more."""
    yield {
        "mixture": "advised", "weight": advice.weights[HARD], "interval": list(advice.ranges[HARD]),
        "amount": advice.amount,
    }  # fmt: skip
    for rival in advice.rivals:
        row = {"mixture": rival.name, "weight": rival.weights[HARD], "interval": list(rival.interval)}
        yield row | {"cost": rival.loss}


def gain(costs: pd.DataFrame, advised: float) -> Figures:
    """Return what the mixture nearest to the advised one gains over equal weights, in runs' scatter.

    `half` is half of the 95% interval of a difference between two mixtures.
    """
    groups = costs[MEAN].groupby(level="hard")
    means, scatter = groups.mean(), pooled(groups)[0] ** 0.5
    weight = min(means.index, key=lambda trained: abs(trained - advised))
    gained = float(means[0.5] - means[weight])
    half = half_of_a_run(groups) * (2 / groups.size().min()) ** 0.5
    return {"weight": weight, "gain": gained, "scatters": gained / scatter, "half": half}


def draw_target(advice: Recommendation, costs: pd.DataFrame) -> Chart:
    """Draw the forecast frontiers, and the means of the target table with their intervals over seeds."""
    study = advice.forecast.observations
    chart = draw_frontier(advice.forecast, sizes=sorted(study.frame["size"].unique()))
    groups = costs.groupby(level="hard")
    means = groups.mean().rename(columns={HARD: "first", EASY: "second"})
    for task, axis, ends in ((HARD, "first", ("x", "x2")), (EASY, "second", ("y", "y2"))):
        half = half_of_a_run(groups[task]) / groups.size().min() ** 0.5
        rows = means.assign(low=means[axis] - half, high=means[axis] + half)
        bars = alt.Chart(marks.data(rows)).mark_rule(opacity=0.5).encode(color=alt.value(INK))
        chart.layer.append(bars.encode(**dict(zip(ends, ("low:Q", "high:Q"), strict=True))))
    chart.title = "lines: forecast; shaded: 95% of it; bars: 95% over seeds"
    return chart


def draw_overview(study: Observations, half: float) -> Chart:
    """Draw README's picture: losses of the easier language over size, a line of the joint law a share.

    Bars are a run's log loss ± `half`. Shares are rounded to five percent: the advised .156 is beside .15.
    """
    joint = fit(study, law="joint", uncertainty=ResidualBootstrap(refits=0))
    rows = pd.concat([study.fit, study.held_out]).query("task == @EASY").sort_values("weight")
    rows = rows.assign(
        kind=rows["role"].map(dict(zip(("fit", "held-out"), KINDS, strict=True))),
        lower=rows["value"] * np.exp(-half), upper=rows["value"] * np.exp(half),
        p=[f"{5 * round(20 * weight)}% of the training" for weight in rows["weight"]],
    )  # fmt: skip
    span = pd.DataFrame({"size": np.geomspace(rows["size"].min(), rows["size"].max(), 30)})
    lines = rows[rows["role"].eq("fit")].drop_duplicates("p")[["task", "weight", "p"]]
    lines = lines.merge(span, how="cross").assign(line=lambda table: table["p"])
    lines["value"] = joint.predict(lines)
    x = count_axis("size", rows["size"], "parameters of the model, without embeddings")
    ends = [*rows["lower"], *rows["upper"], *lines["value"]]
    y = value_axis("value", ends, "test loss of one language, nats a token", log=False)
    key = color("p", [*lines["p"].unique()], ramp(lines["p"].nunique()))
    layers = [marks.lines(lines), *marks.bars(rows), marks.points(rows, kinds=KINDS)]
    title = "lines: the law of the filled points; bars: 95% of a run"
    return styled(marks.panel(*layers, x=x, y=y, color=key, title=title))


if __name__ == "__main__":
    run(main, smoke={"refits": 10, "out": Path(gettempdir()) / "mnmt-synthetic"})
