"""The report as JSON."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import pandas as pd

from mnmt_laws.parameters import fit_document, null_if_nan
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.findings import find

SCHEMA = 1


def report_document(analysis: Analysis) -> dict[str, Any]:
    """Every number of the report; null where a number is unknown."""
    observations = analysis.observations
    return {
        "schema": SCHEMA,
        "software": f"mnmt-laws {version('mnmt-laws')}",
        "study": analysis.study,
        "source": observations.source,
        "metric": observations.metric,
        "unit": observations.unit,
        "testset": observations.testset,
        "objective": analysis.joint.objective,
        "scatter": analysis.joint.scatter,
        "tasks": analysis.tasks,
        "sizes": analysis.sizes,
        "weights": sorted(observations.fit["weight"].unique().tolist()),
        "findings": list(find(analysis)),
        "claims": [asdict(claim) for claim in analysis.claims],
        "fits": {fitted.law.name: fit_document(fitted) for fitted in analysis.fits},
        "irreducible": _records(analysis.irreducible),
        "effective_fractions": _records(fraction_frame(analysis)),
        "held_out": _held_out(analysis),
        "runs": _runs(analysis),
        "wall_seconds": null_if_nan(analysis.wall_seconds),
        "warnings": list(analysis.warnings),
    }


def fraction_frame(analysis: Analysis) -> pd.DataFrame:
    """f(p) with its uncertainty: `task`, `weight`, `value`, `std`, `lower`, `upper`."""
    rows = []
    for task in analysis.tasks:
        own = analysis.effective.fractions.sel(task=task).dropna("weight", subset=["value"])
        for weight in own.weight.values:
            here = own.sel(weight=weight)
            lower, upper = (float(value) for value in here.interval)
            rows.append((task, float(weight), float(here.value), float(here["std"]), lower, upper))
    return pd.DataFrame(rows, columns=["task", "weight", "value", "std", "lower", "upper"])


def _held_out(analysis: Analysis) -> dict[str, Any]:
    summary: dict[str, Any] = {"rows": _records(analysis.held_out.rows)}
    for law in ("capacity", "joint"):
        errors = analysis.held_out.errors(law)
        summary[law] = {
            "count": len(errors),
            "median_relative_error": null_if_nan(float(errors.median())),
            "max_relative_error": null_if_nan(float(errors.max())),
        }
    return summary


def _runs(analysis: Analysis) -> list[dict[str, Any]]:
    keys = ("run", "status", "role", "size", "mixture", "seed", "wall_seconds", "error")
    return [{key: getattr(record, key) for key in keys} for record in analysis.records]


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): null_if_nan(value) for key, value in row.items()} for row in frame.to_dict("records")]
