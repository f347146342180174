"""The report as JSON."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import pandas as pd

from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.fitting.back_test import back_tests
from mnmt_laws.fitting.parameters import fit_document, null_if_nan
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.exposure import exposure_document
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
        "law": analysis.law.law.name,
        "objective": analysis.law.objective,
        "scatter": analysis.law.scatter,
        "tasks": analysis.tasks,
        "sizes": analysis.sizes,
        "weights": sorted(observations.fit["weight"].unique().tolist()),
        "findings": list(report_findings(analysis)),
        "claims": [asdict(claim) for claim in analysis.claims],
        "fits": {fitted.law.name: fit_document(fitted) for fitted in analysis.fits},
        "irreducible": _records(analysis.irreducible),
        "effective_fractions": _records(fraction_frame(analysis)),
        "exposure": None if analysis.exposure is None else exposure_document(analysis.exposure),
        "held_out": _held_out(analysis),
        "back_tests": _back_tests(analysis),
        "comparison": _comparison(analysis),
        "recommendation": _recommendation(analysis.recommendation),
        "design": _design(analysis),
        "intervals": _frame(analysis.intervals),
        "testsets": _testsets(analysis),
        "more_tasks": _frame(analysis.more_tasks),
        "runs": _runs(analysis),
        "wall_seconds": null_if_nan(analysis.wall_seconds),
        "warnings": list(analysis.warnings),
    }


def _comparison(analysis: Analysis) -> dict[str, Any] | None:
    comparison = analysis.comparison
    return (
        None
        if comparison is None
        else {
            "verdict": comparison.verdict,
            "best": comparison.best,
            "decided": comparison.decided,
            "reasons": list(comparison.reasons),
            "laws": _records(comparison.table),
        }
    )


def _design(analysis: Analysis) -> dict[str, Any] | None:
    design = analysis.design
    if design is None:
        return None
    return {
        "regret": null_if_nan(design.regret),
        "reason": design.reason,
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


def _frame(frame: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    return None if frame is None else _records(frame)


def _recommendation(recommendation: Recommendation | None) -> dict[str, Any] | None:
    """Return a recommendation in the types of JSON."""
    if recommendation is None:
        return None
    parts = {
        "want": vars(recommendation.want),
        "rivals": tuple(vars(rival) for rival in recommendation.rivals),
    }
    forms = {"forms": tuple(_records(recommendation.forecast.table))}
    document = {**vars(recommendation), **parts, **forms}
    return {key: _plain(value) for key, value in document.items() if key != "forecast"}


def _plain(value: Any) -> Any:
    """Return numbers, and tuples and mappings of them, in the types of JSON; NaN becomes null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else null_if_nan(value)


def fraction_frame(analysis: Analysis) -> pd.DataFrame:
    """Return f(p) with its uncertainty: `task`, `weight`, `value`, `std`, `lower`, `upper`."""
    rows: list[tuple[object, ...]] = []
    effective = analysis.effective
    for task in [] if effective is None else analysis.tasks:
        assert effective is not None  # there are tasks only where it is known
        fractions = effective.fractions.sel(task=task).dropna("weight", subset=["value"])
        for weight in fractions.weight.values:
            fraction = fractions.sel(weight=weight)
            lower, upper = (float(value) for value in fraction.interval)
            rows.append((task, float(weight), float(fraction.value), float(fraction["std"]), lower, upper))
    return pd.DataFrame(rows, columns=["task", "weight", "value", "std", "lower", "upper"])


def _held_out(analysis: Analysis) -> dict[str, Any]:
    held_out = analysis.held_out
    errors, (inside, known) = held_out.errors(), held_out.num_inside
    return {
        "law": held_out.law,
        "rows": _records(held_out.rows),
        "count": len(errors),
        "median_relative_error": null_if_nan(float(errors.median())),
        "max_relative_error": null_if_nan(float(errors.max())),
        "signs": held_out.signs,
        "inside": inside,
        "intervals": known,
        "median_width": null_if_nan(held_out.width),
        "median_width_of_reducible": null_if_nan(held_out.reducible_width),
        "hold_a_constant": held_out.num_constant,
        "untested": list(held_out.untested),
    }


def _back_tests(analysis: Analysis) -> list[dict[str, Any]]:
    """Return the law's errors on the largest sizes and longest runs, refitted without them."""
    return [
        {
            "left_out": test.left_out,
            "error": null_if_nan(test.error),
            "signs": test.signs,
            "reach": null_if_nan(test.reach),
            "chance": null_if_nan(test.chance),
            "sentence": test.describe(),
        }
        for test in back_tests(analysis.law)
    ]


def _runs(analysis: Analysis) -> list[dict[str, Any]]:
    keys = ("run", "status", "role", "size", "mixture", "seed", "wall_seconds", "error")
    return [{key: getattr(record, key) for key in keys} for record in analysis.records]


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): null_if_nan(value) for key, value in row.items()} for row in frame.to_dict("records")]
