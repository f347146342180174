"""What advice was worth at the target size of studies/synthetic.toml: five mixtures there, three seeds each.

`runs.csv` is the study with the two models of its loop. `target.csv` is the `size` of `[goal]` at five
mixtures with `[sweep] seeds = [1, 2, 3]`.

    python -m studies.analysis.synthetic
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, run
from mnmt_laws import (
    Observations,
    Recommendation,
    ResidualBootstrap,
    build_report,
    fit,
    observe,
    predict_held_out,
    recommend,
)
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import Chart, color, count_axis, ramp, styled, value_axis
from studies.analysis.rulers import draw_predictions, held_out_errors, with_rulers
from studies.page import PAGES, print_rows, write_page

OUT = PAGES / "synthetic"
IMPORTANCE = {"xx-aa": 2.0, "xx-bb": 1.0}
HARD, EASY = "xx-aa", "xx-bb"
REPORT_FILES = ("report.json", "figures/trade-off-frontier-1.svg")
"""What pages show of `mnmt-laws report`."""
KINDS = {"trained": "circle", "trained after the prediction": marks.RING}


def main(*, refits: int = 200, smoke: bool = False) -> None:
    """Print and write what was advised and worth, errors of laws and rulers, README's picture and the report.

    Args:
        refits: Draws of the forecast.
        smoke: Whether to write nothing.
    """
    study, target = observe(OUT / "runs.csv", testset="test"), observe(OUT / "target.csv", testset="test")
    costs, size = costs_of(target.frame), float(target.frame["size"].iloc[0])
    advice = recommend(study, size=size, preference=IMPORTANCE, refits=refits)
    results = {
        "target": list(by_mixture(costs)),
        "predicted": list(forecasts(advice)),
        "reached": [worth(costs, advice.weights[HARD])],
    }
    everything = observe(with_target(), metric="loss", testset="test")
    held_out = predict_held_out(fit(everything, law="capacity", uncertainty=ResidualBootstrap(refits=refits)))
    rows = with_rulers(everything, held_out.rows)
    results["held out"] = list(held_out_errors(everything, held_out))
    results["by ruler"] = list(mean_by_ruler(rows))
    for name, table in results.items():
        print_rows(name, table)
    if not smoke:
        charts = {"overview": draw_overview(study), "predictions": draw_predictions(rows, rows["task"])}
        write_page(OUT, results, charts)
        copy_report(ResidualBootstrap(refits=refits))


def copy_report(method: ResidualBootstrap) -> None:
    """Build the report of the study, and keep what pages show of it."""
    with TemporaryDirectory() as place:
        build_report(OUT / "runs.csv", out=place, testset="test", uncertainty=method, preference=IMPORTANCE)
        for name in REPORT_FILES:
            shutil.copy(Path(place) / name, OUT)


def with_target() -> pd.DataFrame:
    """Return the fitted runs of the study, with the models of the target table held out."""
    study, target = pd.read_csv(OUT / "runs.csv"), pd.read_csv(OUT / "target.csv")
    return pd.concat([study[study["role"] == "fit"], target.assign(role="held-out")], ignore_index=True)


def mean_by_ruler(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield the mean by importance that the ruler predicts for every mixture of the target table."""
    losses = rows.drop_duplicates(["task", "mixture"]).pivot_table(
        index="mixture", columns="task", values="line"
    )
    importance = pd.Series(IMPORTANCE) / sum(IMPORTANCE.values())
    for mixture, mean in (losses[list(IMPORTANCE)] @ importance).items():
        yield {"mixture": mixture, "mean": float(mean)}  # NaN beyond the weights trained


def costs_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the losses of every model of the target table and their mean by importance, by weight."""
    frame = frame.assign(hard=frame["mixture"].str.extract(rf"{HARD}:([\d.]+)")[0].astype(float))
    table = frame.pivot_table(index=["hard", "seed"], columns="task", values="value")
    importance = pd.Series(IMPORTANCE) / sum(IMPORTANCE.values())
    return table.assign(mean=table[list(IMPORTANCE)] @ importance)


def by_mixture(costs: pd.DataFrame) -> Iterator[Figures]:
    """Yield the mean and the scatter of every mixture's models."""
    for weight, rows in costs.groupby(level="hard"):
        numbers = {name: float(rows[name].mean()) for name in costs.columns}
        yield {f"weight of {HARD}": float(weight), **numbers, "scatter": float(rows["mean"].std())}


def forecasts(advice: Recommendation) -> Iterator[Figures]:
    """Yield the advised weight with the weights that cost about as little, and what rules would cost more."""
    yield {"mixture": "advised", "weight": advice.weights[HARD], "interval": list(advice.ranges[HARD])}
    for rival in advice.rivals:
        row = {"mixture": rival.name, "weight": rival.weights[HARD], "interval": list(rival.interval)}
        yield row | {"cost": rival.loss, "chance": rival.chance}


def worth(costs: pd.DataFrame, advised: float) -> Figures:
    """Return what the mixture nearest to the advised one gains over equal weights, in runs' scatter."""
    groups = costs["mean"].groupby(level="hard")
    means, scatter = groups.mean(), float(np.sqrt(groups.var().mean()))
    weight = min(means.index, key=lambda trained: abs(trained - advised))
    gain = float(means[0.5] - means[weight])
    return {
        "weight": weight, "gain": gain, "scatter": scatter, "gain / scatter": gain / scatter,
        "best weight": float(means.idxmin()), "regret": float(means[weight] - means.min()),
    }  # fmt: skip


def draw_overview(study: Observations) -> Chart:
    """Draw README's picture: losses of the easier language over size, a line of the joint law a share."""
    joint = fit(study, law="joint", uncertainty=ResidualBootstrap(refits=0))
    rows = pd.concat([study.fit, study.held_out])
    rows = rows[rows["task"] == EASY]
    kinds = np.where(rows["role"] == "held-out", *reversed(KINDS))
    rows = rows.assign(kind=kinds, p=rows["weight"].map(share_label))
    weights = np.sort(study.fit.loc[study.fit["task"] == EASY, "weight"].unique())
    sizes = np.geomspace(rows["size"].min(), rows["size"].max(), 30)
    grid = pd.DataFrame([(weight, size) for weight in weights for size in sizes], columns=["weight", "size"])
    grid = grid.assign(task=EASY, line=grid["weight"], p=grid["weight"].map(share_label))
    grid["value"] = joint.predict(grid)
    labels = [share_label(weight) for weight in weights]
    return styled(
        marks.panel(
            marks.lines(grid),
            marks.points(rows, kinds=KINDS),
            x=count_axis("size", rows["size"], "parameters of the model, without embeddings"),
            y=value_axis(
                "value",
                pd.concat([rows["value"], grid["value"]]),
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
    run(main, smoke={"refits": 10, "smoke": True})
