"""Translation quality against loss: the line of each task from its loss to chrF, BLEU or BLEURT."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from scipy import stats

from mnmt_laws.errors import ArgumentError
from mnmt_laws.tables.metrics import read_metric
from mnmt_laws.tables.source import TableSource, observe, open_source

_PAIRING = ["run", "size", "task", "weight", "mixture", "seed"]


def pair_metrics(
    source: TableSource,
    *,
    loss: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
) -> pd.DataFrame:
    """Return a loss and the scores and errors of the same runs, tasks and test set.

    Metrics of unknown names are among them if the table says which way they go (`RunTable.rising`).

    Args:
        source: Path of a run table or of a folder of run records, or a frame or a run table.
        loss: The loss's value in the column `metric`; by default the only loss, or `loss`.
        testset: A value of the column `testset`; by default the only one, or `test`.
        architecture: A value of the column `architecture`; may be omitted where there is only one.

    Returns:
        A row for each run and task, with the columns that distinguish runs, `loss`, and a column for each
        other metric; `attrs["unit"]` is the unit of `loss`. Empty if no loss or nothing else was measured.

    Raises:
        TableError: If the source cannot be read, or a choice must be made.
    """
    table = open_source(source).table
    rows = table.frame
    for column, value in (("testset", testset), ("architecture", architecture)):
        rows = rows if value is None else rows[rows[column].eq(value)]
    if not any(known and known.is_loss for known in map(read_metric, rows["metric"].unique())):
        return pd.DataFrame(columns=["task", "loss"])
    losses = observe(replace(table, rising=None), metric=loss, testset=testset, architecture=architecture)
    architecture = losses.frame["architecture"].iloc[0]
    rows = rows[rows["testset"].eq(losses.testset) & rows["architecture"].eq(architecture)]
    kinds = {name: read_metric(name) for name in sorted(rows["metric"].unique())}
    directed = table.rising is not None
    metrics = [name for name, kind in kinds.items() if (directed if kind is None else not kind.is_loss)]
    if not metrics:
        return pd.DataFrame(columns=["task", "loss"])
    parts = [losses.frame.set_index(_PAIRING)["value"].rename("loss")]
    for metric in metrics:
        own_way = replace(table, rising=None if kinds[metric] else table.rising)
        observed = observe(
            own_way, metric=metric, testset=losses.testset or None, architecture=architecture or None
        )
        parts.append(observed.frame.set_index(_PAIRING)["value"].rename(metric))
    pairs = pd.concat(parts, axis=1).reset_index().dropna(subset=["loss"])
    pairs.attrs["unit"] = losses.unit
    return pairs


def scores_of(pairs: pd.DataFrame, *, rising: bool) -> list[str]:
    """Return the columns of `pair_metrics` that are scores; of unknown names if they are `rising`."""
    kinds = {name: read_metric(name) for name in pairs.columns if name not in (*_PAIRING, "loss")}
    return [name for name, kind in kinds.items() if (rising if kind is None else kind.rising)]


def quality_lines(pairs: pd.DataFrame, metric: str, *, level: float = 0.95) -> pd.DataFrame:
    """Fit the least-squares line metric = intercept + slope · loss of each task.

    Fernandes et al. 2023 find chrF and BLEURT almost linear in the loss.

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
        metrics = ", ".join(sorted(set(pairs.columns) - {*_PAIRING, "loss"})) or "none"
        raise ArgumentError(f"`metric` must be one of {metrics}, but is {metric!r}.")
    rows = []
    for task, task_pairs in pairs.dropna(subset=[metric]).groupby("task"):
        if len(task_pairs) < 3 or task_pairs["loss"].nunique() < 2:
            continue
        line = stats.linregress(task_pairs["loss"].to_numpy(float), task_pairs[metric].to_numpy(float))
        reach = float(line.stderr) * float(stats.t.ppf(0.5 + level / 2, len(task_pairs) - 2))
        slope = float(line.slope)
        rows.append((task, metric, slope, float(line.intercept), float(line.rvalue), float(line.stderr),
                     slope - reach, slope + reach, len(task_pairs)))  # fmt: skip
    columns = ["task", "metric", "slope", "intercept", "r", "slope_std", "lower", "upper", "count"]
    return pd.DataFrame(rows, columns=columns)
