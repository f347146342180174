"""`mnmt-laws frontier`: every task's loss over the mixtures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.answers.decision.asked import Asked, forecast_for
from mnmt_laws.answers.frontier import frontier as predict_frontier
from mnmt_laws.arrays import Array
from mnmt_laws.cli.console import print_frame, print_json, warn
from mnmt_laws.cli.laws import LawOrAverage
from mnmt_laws.cli.options import (
    DEFAULT_REFITS,
    DEFAULT_TABLE,
    Json,
    Positive,
    Refits,
    TableConfig,
    observe_table,
)
from mnmt_laws.cli.question import warnings_of

_PRINTED_POINTS = 13  # of a frontier, in the printed table


def frontier(
    source: Path | None = None,
    *,
    size: Positive | None = None,
    tokens: Positive | None = None,
    law: LawOrAverage = "auto",
    table: TableConfig = DEFAULT_TABLE,
    refits: Refits = DEFAULT_REFITS,
    as_json: Json = False,
) -> None:
    """Predict the loss of every task over the mixtures, at one size and training length.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: The number of parameters N; by default twice the largest fitted, or a larger one held out.
        tokens: The training length D, tokens of all tasks; by default the longest of the table.
        law: One law, or the average over the laws and rulers that predicted best what was left out.
        table: The part of the table to analyse.
        refits: The number of draws.
        as_json: Print JSON only.
    """
    observations = observe_table(source, table)
    forecast, _ = forecast_for(observations, Asked(size=size, tokens=tokens), law=law, refits=refits)
    result, warnings = predict_frontier(forecast), warnings_of(forecast.best)
    if as_json:
        print_json({**_document(result), "warnings": warnings})
        return
    warn(warnings)
    points = _few_points(result)
    print_frame(points, dict.fromkeys(map(str, points), "{:.4f}"))


def _weights(result: xr.Dataset) -> dict[str, Array]:
    """Return {source: (points,) its weight}."""
    dimension = next(str(name) for name in result.weight.dims if name != "point")
    return {str(name): result.weight.sel({dimension: name}).to_numpy() for name in result[dimension].values}


def _document(result: xr.Dataset) -> dict[str, Any]:
    weights = _weights(result)
    tasks = {
        str(task): {
            **({"weight": weights[task]} if task in weights else {}),
            **{name: result[name].sel(task=task).to_numpy() for name in ("value", "lower", "upper")},
        }
        for task in result.task.values
    }
    at = {name: result.attrs.get(name) for name in ("size", "tokens", "law")}
    efficient = result.efficient.to_numpy().tolist()
    return {**at, "tasks": tasks, "sources": weights, "efficient": efficient}


def _few_points(result: xr.Dataset) -> pd.DataFrame:
    """Return the weights and losses of mixtures spread evenly along the frontier."""
    count = result.sizes["point"]
    points = np.unique(np.linspace(0, count - 1, min(count, _PRINTED_POINTS)).round().astype(int))
    columns = {f"weight {name}": values for name, values in _weights(result).items()}
    metric = result.attrs["long_name"]
    columns |= {f"{metric} {task}": result.value.sel(task=task).to_numpy() for task in result.task.values}
    return pd.DataFrame(columns).iloc[points]
