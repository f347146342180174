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


def main(*, refits: int = 200, out: Path = OUT) -> None:
    """Print and write what was advised and worth, errors of laws and rulers, and README's picture.

    Args:
        refits: Draws of the forecast.
        out: Folder for results.json and the figures.
    """
    study, target = observe(OUT / "runs.csv", testset="test"), observe(OUT / "target.csv", testset="test")
    costs, size = costs_of(target.frame), float(target.frame["size"].iloc[0])
    everything = observe(with_target(), metric="loss", testset="test")
    advice = recommend(everything, size=size, preference=IMPORTANCE, refits=refits)
    results: dict[str, Answer] = {
        "target": by_mixture(costs),
        "predicted": forecasts(advice),
        "reached": [worth(rows, advice.weights[HARD]) for rows in (costs, costs_of(study.held_out))],
    }
    law = fit(everything, law="capacity", uncertainty=ResidualBootstrap(refits=refits))
    results["irreducible"], held_out = compare_irreducible(law), predict_held_out(law)
    rows = with_rulers(everything, held_out.rows)
    results |= {"held out": held_out_errors(everything, held_out), "by ruler": mean_by_ruler(rows)}
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


def mean_by_ruler(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean by importance that law and ruler predict for every mixture of the target table."""
    table = rows.drop_duplicates(["task", "mixture"]).set_index(["mixture", "task"])[["predicted", "line"]]
    means = table.mul(SHARES, axis=0, level="task").groupby(level="mixture").agg("sum", min_count=2)
    return means.reset_index()  # NaN beyond the weights trained


def costs_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the losses of every model of the target table and their mean by importance, by weight."""
    frame = frame.assign(hard=frame["mixture"].str.extract(rf"{HARD}:([\d.]+)")[0].astype(float))
    table = frame.pivot_table(index=["hard", "seed"], columns="task", values="value")
    return table.assign(mean=table[list(SHARES.index)] @ SHARES)


def by_mixture(costs: pd.DataFrame) -> Iterator[Figures]:
    """Yield the mean and the scatter of every mixture's models."""
    for weight, rows in costs.groupby(level="hard"):
        numbers = {name: float(rows[name].mean()) for name in costs.columns}
        yield {f"weight of {HARD}": float(weight), **numbers, "scatter": float(rows["mean"].std())}


def forecasts(advice: Recommendation) -> Iterator[Figures]:
    """Yield the advised weight with those that cost at most `amount` more, and what rules would cost more."""
    yield {
        "mixture": "advised", "weight": advice.weights[HARD], "interval": list(advice.ranges[HARD]),
        "amount": advice.amount,
    }  # fmt: skip
    for rival in advice.rivals:
        row = {"mixture": rival.name, "weight": rival.weights[HARD], "interval": list(rival.interval)}
        yield row | {"cost": rival.loss, "chance": rival.chance}


def worth(costs: pd.DataFrame, advised: float) -> Figures:
    """Return what the mixture nearest to the advised one gains over equal weights, in runs' scatter.

    `half` is half of the 95% interval of a difference between two mixtures.
    """
    groups = costs["mean"].groupby(level="hard")
    means, scatter = groups.mean(), pooled(groups)[0] ** 0.5
    weight = min(means.index, key=lambda trained: abs(trained - advised))
    gain = float(means[0.5] - means[weight])
    return {
        "weight": weight, "gain": gain, "scatter": scatter, "gain / scatter": gain / scatter,
        "half": half_of_a_run(groups) * (2 / groups.size().min()) ** 0.5,
        "best weight": float(means.idxmin()), "regret": float(means[weight] - means.min()),
    }  # fmt: skip


def draw_target(advice: Recommendation, costs: pd.DataFrame) -> Chart:
    """Draw the forecast frontiers, and the means of the target table with their intervals over seeds."""
    study = advice.forecast.observations
    chart = draw_frontier(advice.forecast, sizes=sorted(study.frame["size"].unique()))
    groups = costs.groupby(level="hard")
    means = groups.mean().rename(columns={HARD: "first", EASY: "second"})
    for task, axis, ends in ((HARD, "first", ("x", "x2")), (EASY, "second", ("y", "y2"))):
        half = half_of_a_run(groups[task]) / groups.size().min() ** 0.5
        rows = means.assign(low=means[axis] - half, high=means[axis] + half)
        bars = alt.Chart(marks.data(rows)).mark_rule(opacity=0.5)
        chart.layer.append(
            bars.encode(**dict(zip(ends, ("low:Q", "high:Q"), strict=True)), color=alt.value(INK))
        )
    chart.title = "lines: forecast; shaded: 95% of it; bars: 95% over seeds"
    return chart


def draw_overview(study: Observations, half: float) -> Chart:
    """Draw README's picture: losses of the easier language over size, a line of the joint law a share.

    Bars are a run's log loss ± `half`.
    """
    joint = fit(study, law="joint", uncertainty=ResidualBootstrap(refits=0))
    rows = pd.concat([study.fit, study.held_out])
    rows = rows[rows["task"] == EASY]
    kinds = np.where(rows["role"] == "held-out", *reversed(KINDS))
    ends = {"lower": rows["value"] * np.exp(-half), "upper": rows["value"] * np.exp(half)}
    rows = rows.assign(kind=kinds, p=rows["weight"].map(share_label), **ends)
    weights = np.sort(study.fit.loc[study.fit["task"] == EASY, "weight"].unique())
    sizes = np.geomspace(rows["size"].min(), rows["size"].max(), 30)
    grid = pd.DataFrame([(weight, size) for weight in weights for size in sizes], columns=["weight", "size"])
    grid = grid.assign(task=EASY, line=grid["weight"], p=grid["weight"].map(share_label))
    grid["value"] = joint.predict(grid)
    labels = [share_label(weight) for weight in weights]
    return styled(
        marks.panel(
            marks.lines(grid),
            *marks.bars(rows),
            marks.points(rows, kinds=KINDS),
            title="lines: the law of the filled points; bars: 95% of a run",
            x=count_axis("size", rows["size"], "parameters of the model, without embeddings"),
            y=value_axis(
                "value",
                pd.concat([rows["lower"], rows["upper"], grid["value"]]),
                "test loss of one language, nats a token",
                log=False,
            ),
            color=color("p", labels, ramp(len(labels))),
        )
    )


def share_label(weight: float) -> str:
    """Return a legend's label of a weight, to five percent: the advised .156 is beside .15."""
    return f"{5 * round(20 * weight)}% of the training"


if __name__ == "__main__":
    run(main, smoke={"refits": 10, "out": Path(gettempdir()) / "mnmt-synthetic"})
