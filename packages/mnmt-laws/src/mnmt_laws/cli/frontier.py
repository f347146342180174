"""`mnmt-laws frontier`: every task's loss over the mixtures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.answers.mixtures.doubts import extrapolation
from mnmt_laws.answers.mixtures.frontier import frontier as predict_frontier
from mnmt_laws.arrays import Array
from mnmt_laws.cli.choice_of_law import check_model, law_of, print_back_tests
from mnmt_laws.cli.console import print_frame, print_json, warn
from mnmt_laws.cli.options import (
    DEFAULT_REFITS,
    DEFAULT_TABLE,
    Json,
    Positive,
    Refits,
    TableConfig,
    observe_table,
)
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import ResidualBootstrap
from mnmt_laws.laws import LawName

_PRINTED_POINTS = 13  # of a frontier, in the printed table


def frontier(
    source: Path | None = None,
    *,
    size: Positive | None = None,
    tokens: Positive | None = None,
    law: LawName | None = None,
    table: TableConfig = DEFAULT_TABLE,
    refits: Refits = DEFAULT_REFITS,
    as_json: Json = False,
) -> None:
    """Predict the loss of every task over the mixtures, at one size and training length.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: The number of parameters N; any size.
        tokens: The training length D, target tokens of all tasks, for laws that know it.
        law: The law of size, length and mixture. By default `capacity`, or with `--tokens`
            `share-tied`; `simplex-capacity` and `simplex-share` where a weight occurs in several mixtures.
        table: The part of the table to analyse.
        refits: The number of refits. With 0 the uncertainty is unknown.
        as_json: Print JSON only.
    """
    observations = observe_table(source, table)
    name = law_of(observations, law, length=tokens is not None)
    check_model(name, size=size, tokens=tokens)
    fitted = fit(observations, law=name, uncertainty=ResidualBootstrap(refits=refits))
    result = predict_frontier(fitted, size=size, tokens=tokens)
    at = {name: value for name, value in (("size", size), ("tokens", tokens)) if value is not None}
    warnings = (*fitted.warnings, *extrapolation(fitted, {}, **at))
    if as_json:
        print_json({**_document(fitted, result, size=size, tokens=tokens), "warnings": warnings})
        return
    points = _few_points(fitted, result)
    print_frame(points, dict.fromkeys(map(str, points), "{:.4f}"))
    print_back_tests(fitted, size=size, tokens=tokens)
    warn(warnings)


def _weights(fitted: LawFit, result: xr.Dataset) -> dict[str, Array]:
    """Return {source: (points,) its weight}."""
    return {name: result.weight[index].to_numpy() for index, name in enumerate(fitted.sources)}


def _document(
    fitted: LawFit, result: xr.Dataset, *, size: float | None, tokens: float | None
) -> dict[str, Any]:
    weights = _weights(fitted, result)
    tasks = {
        task: {
            **({"weight": weights[task]} if task in weights else {}),
            **{name: result[name].sel(task=task).to_numpy() for name in ("value", "lower", "upper")},
        }
        for task in fitted.tasks
    }
    mixtures = {} if fitted.sources == fitted.tasks else {"sources": weights}
    document = {"size": size, "tokens": tokens, "law": fitted.law.name, "tasks": tasks, **mixtures}
    return {**document, "efficient": result.efficient.to_numpy().tolist()}


def _few_points(fitted: LawFit, result: xr.Dataset) -> pd.DataFrame:
    """Return the weights and losses of mixtures spread evenly along the frontier."""
    count = result.sizes["point"]
    points = np.unique(np.linspace(0, count - 1, min(count, _PRINTED_POINTS)).round().astype(int))
    columns = {f"weight {name}": values for name, values in _weights(fitted, result).items()}
    columns |= {f"value {task}": result.value.sel(task=task).to_numpy() for task in fitted.tasks}
    return pd.DataFrame(columns).iloc[points]
