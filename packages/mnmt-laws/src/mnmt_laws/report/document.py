"""The report as JSON."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import pandas as pd

from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.fitting.learning_curve import Curve
from mnmt_laws.fitting.parameters import fit_document, null_if_nan
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.findings import report_findings

SCHEMA = 1


def report_document(analysis: Analysis) -> dict[str, Any]:
    """Return every number of the report in the types of JSON; null where a number is unknown."""
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
        "findings": list(report_findings(analysis)),
        "claims": [asdict(claim) for claim in analysis.claims],
        "fits": {fitted.law.name: fit_document(fitted) for fitted in analysis.fits},
        "irreducible": _records(analysis.irreducible),
        "effective_fractions": _records(fraction_frame(analysis)),
        "held_out": _held_out(analysis),
        "comparison": _comparison(analysis),
        "recommendation": _recommendation(analysis.recommendation),
        "design": _design(analysis),
        "intervals": _frame(analysis.intervals),
        "testsets": _testsets(analysis),
        "more_tasks": None if analysis.more_tasks is None else _records(analysis.more_tasks.rows),
        "corrected": [_corrected(curve) for curve in analysis.curves or () if curve.corrected],
        "runs": _runs(analysis),
        "wall_seconds": null_if_nan(analysis.wall_seconds),
        "warnings": list(analysis.warnings),
    }


def _comparison(analysis: Analysis) -> dict[str, Any] | None:
    comparison = analysis.comparison
    return (
        None
        if comparison is None
        else {"verdict": comparison.verdict, "best": comparison.best, "laws": _records(comparison.table)}
    )


def _design(analysis: Analysis) -> dict[str, Any] | None:
    design = analysis.design
    if design is None:
        return None
    return {
        "quantity": design.quantity,
        "std": design.std,
        "method": design.method,
        "runs": _records(design.runs),
    }


def _testsets(analysis: Analysis) -> dict[str, Any] | None:
    """Return f(p) of each test set."""
    if analysis.testsets is None:
        return None
    frames = {
        name: effective.fractions[["value", "std"]].to_dataframe().dropna(subset=["value"]).reset_index()
        for name, effective in analysis.testsets.items()
    }
    return {name: _records(frame[["task", "weight", "value", "std"]]) for name, frame in frames.items()}


def _corrected(curve: Curve) -> dict[str, Any]:
    keys = ("run", "task", "size", "weight", "horizon", "value", "std")
    return {"last": float(curve.values[-1]), **{key: null_if_nan(getattr(curve, key)) for key in keys}}


def _frame(frame: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    return None if frame is None else _records(frame)


def _recommendation(recommendation: Recommendation | None) -> dict[str, Any] | None:
    """Return a recommendation in the types of JSON; intervals of NaN become nulls."""
    if recommendation is None:
        return None
    document = asdict(recommendation)
    for key in ("weight_intervals", "predicted_intervals"):
        document[key] = {task: [null_if_nan(end) for end in ends] for task, ends in document[key].items()}
    return {key: null_if_nan(value) for key, value in document.items()}


def fraction_frame(analysis: Analysis) -> pd.DataFrame:
    """Return f(p) with its uncertainty: `task`, `weight`, `value`, `std`, `lower`, `upper`."""
    rows = []
    for task in analysis.tasks:
        fractions = analysis.effective.fractions.sel(task=task).dropna("weight", subset=["value"])
        for weight in fractions.weight.values:
            fraction = fractions.sel(weight=weight)
            lower, upper = (float(value) for value in fraction.interval)
            rows.append((task, float(weight), float(fraction.value), float(fraction["std"]), lower, upper))
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
