"""What the residuals say of rival laws: criteria, the effect of shared errors, and simulated contests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.noise import measure_noise, task_residuals
from mnmt_laws.fitting.refits import log_of, refit_copies, value_of
from mnmt_laws.solver.objective import find_objective

_ROUNDING = 1e-12  # residuals below this are those of a perfect fit


def criteria_of(fit: LawFit, task: str, label: str) -> dict[str, object]:
    """Return a task's row of the table: parameters, scatter, AIC, BIC and the test of lack of fit.

    AIC and BIC are those of Gaussian errors, and unknown for a law that has as many parameters as there are
    values.
    """
    rows, _ = task_residuals(fit, task)
    observed, predicted = rows["value"].to_numpy(float), fit.predict(rows)
    count, num_params = len(rows), fit.num_parameters(task)
    deviance = deviance_of(fit.objective, observed, predicted) if count > num_params else math.nan
    return {
        "task": task,
        "law": fit.law.name,
        "label": label,
        "num_params": num_params,
        "scatter": float(np.sqrt(np.mean((predicted / observed - 1) ** 2))),
        "aic": float(deviance) + 2 * (num_params + 1),
        "bic": float(deviance) + math.log(count) * (num_params + 1),
        "lack_of_fit": measure_noise(fit, task).lack_of_fit,
    }


def deviance_of(objective: str, observed: Array, predicted: Array) -> Array:
    """Return -2 log-likelihood over the last axis at the best scale of the noise, up to a constant."""
    residual = find_objective(objective).residual(observed, predicted)
    return np.asarray(residual.shape[-1] * np.log(np.maximum(np.mean(residual**2, axis=-1), _ROUNDING**2)))


@dataclass(frozen=True, kw_only=True)
class SharedErrors:
    """How far the measurements of one run share their errors."""

    correlation: float
    """Mean correlation of the residuals of one run, over its tasks and lengths, at least 0."""

    design_effect: float
    """1 + (m - 1) ρ, m measurements a run: by how much summed evidence overstates."""


def shared_errors(fit: LawFit) -> SharedErrors:
    """Return the design effect of the residuals of a fit (Kish 1965, sec. 5.4).

    ρ is the mean product of the standardized residuals of two measurements of one run, and
    m = Σ m_i² / Σ m_i over runs. Criteria summed over tasks are divided by 1 + (m - 1) ρ: the variance of a
    sum of log-likelihood ratios grows by that factor where tasks share their errors (the adjustment of
    composite likelihoods, Varin, Reid and Firth 2011, sec. 2.3).
    """
    parts = []
    for task in fit.tasks:
        rows, residuals = task_residuals(fit, task)
        scale = math.sqrt(float(np.mean(residuals**2))) if len(residuals) else 0.0
        if scale > _ROUNDING:
            parts.append(pd.DataFrame({"run": rows["run"], "z": residuals / scale}))
    table = pd.concat(parts) if parts else pd.DataFrame({"run": [], "z": []})
    groups = table[table["run"] != ""].groupby("run")["z"]
    counts, sums, squares = groups.size(), groups.sum(), groups.apply(lambda z: float((z**2).sum()))
    pairs = float((counts * (counts - 1)).sum())
    if not pairs:
        return SharedErrors(correlation=0.0, design_effect=1.0)
    correlation = min(max(float((sums**2 - squares).sum()) / pairs, 0.0), 1.0)
    total = float(counts.sum()) + float((table["run"] == "").sum())
    mean_count = float((counts**2).sum() + (table["run"] == "").sum()) / total
    return SharedErrors(correlation=correlation, design_effect=1 + (mean_count - 1) * correlation)


def simulate_contest(
    truth: LawFit, other: LawFit, errors: SharedErrors, *, tables: int, seed: int = 0
) -> Array:
    """Return (tables,) the pooled BIC of `other` less that of `truth`, on tables simulated from `truth`.

    Values are the predictions of `truth` with Gaussian noise of its residual variance, correlated within
    runs; both laws are refitted to each table.
    """
    rows = truth.rows
    values = _simulate(truth, rows, errors.correlation, tables, seed)
    bic = {}
    for name, fit in {"truth": truth, "other": other}.items():
        draws = refit_copies(fit, values=values)
        predicted = fit.evaluator.predict_rows(draws, rows, fit.observations)
        bic[name] = sum(
            deviance_of(fit.objective, values[:, mask], predicted[:, mask])
            + math.log(mask.sum()) * (fit.num_parameters(task) + 1)
            for task in fit.tasks
            for mask in [(rows["task"] == task).to_numpy()]
        )
    return np.asarray((bic["other"] - bic["truth"]) / errors.design_effect)


def _simulate(fit: LawFit, rows: pd.DataFrame, correlation: float, tables: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    names = rows["run"].where(rows["run"] != "", "row " + rows.index.astype(str).to_series(rows.index))
    codes, runs = pd.factorize(names)
    shared = rng.standard_normal((tables, len(runs)))[:, codes]
    noise = math.sqrt(correlation) * shared
    noise += math.sqrt(1 - correlation) * rng.standard_normal((tables, len(rows)))
    deviations: Mapping[str, float] = {
        task: math.sqrt(max(float(r @ r), _ROUNDING**2) / max(len(r) - fit.num_parameters(task), 1))
        for task in fit.tasks
        for r in [task_residuals(fit, task)[1]]
    }
    scale = rows["task"].map(deviations).to_numpy(float)
    return value_of(fit, log_of(fit, fit.predict(rows)) + scale * noise)
