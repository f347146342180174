"""Translation quality against loss: the line that carries what the laws say over to chrF, BLEU or BLEURT."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import observe
from mnmt_laws.tables.table import RunTable

_PAIRING = ["run", "size", "task", "weight", "mixture", "seed"]


def pair_metrics(table: RunTable, observations: Observations) -> pd.DataFrame:
    """Loss and every other metric of the same runs, tasks and test set; empty where there is only one metric.

    Returns:
        A row a (run, task): the columns that tell runs apart, `loss`, and a column a metric.
    """
    frame = table.frame
    chosen = observations.frame["architecture"].iloc[0]
    here = frame[frame["testset"].eq(observations.testset) & frame["architecture"].eq(chosen)]
    metrics = sorted(here["metric"].unique())
    if "loss" not in metrics or len(metrics) < 2:
        return pd.DataFrame(columns=["task", "loss"])
    parts = [
        observe(table, metric=metric, testset=observations.testset or None, architecture=chosen or None)
        .frame.set_index(_PAIRING)["value"]
        .rename(metric)
        for metric in metrics
    ]
    return pd.concat(parts, axis=1).reset_index().dropna(subset=["loss"])


def quality_lines(pairs: pd.DataFrame, metric: str, *, level: float = 0.95) -> pd.DataFrame:
    """The least-squares line metric = intercept + slope · loss of each task.

    Fernandes et al. 2023, sec. 3.5, find chrF and BLEURT almost linear in the loss.

    Args:
        pairs: From `pair_metrics`.
        metric: A column of it.
        level: Of the slope's interval.

    Returns:
        Columns `task`, `metric`, `slope`, `intercept`, `r` (correlation), `slope_std`, `lower`, `upper` (of
        the slope, Student's t) and `count`; tasks with fewer than three pairs are left out.

    Raises:
        ValueError: If there is no such metric.
    """
    if metric not in pairs:
        known = ", ".join(sorted(set(pairs.columns) - {*_PAIRING, "loss"})) or "none"
        raise ValueError(f"`metric` must be one of {known}, but is {metric!r}.")
    rows = []
    for task, own in pairs.dropna(subset=[metric]).groupby("task"):
        if len(own) < 3 or own["loss"].nunique() < 2:
            continue
        line = stats.linregress(own["loss"].to_numpy(float), own[metric].to_numpy(float))
        reach = float(line.stderr) * float(stats.t.ppf(0.5 + level / 2, len(own) - 2))
        slope = float(line.slope)
        rows.append((task, metric, slope, float(line.intercept), float(line.rvalue), float(line.stderr),
                     slope - reach, slope + reach, len(own)))  # fmt: skip
    columns = ["task", "metric", "slope", "intercept", "r", "slope_std", "lower", "upper", "count"]
    return pd.DataFrame(rows, columns=columns)


def metric_at(
    lines: pd.DataFrame, *, task: str, loss: float | np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> object:
    """The metric that a task's line gives at a loss, in the metric's points."""
    own = lines.set_index("task").loc[task]
    return own["intercept"] + own["slope"] * np.asarray(loss)
