"""A fitted law: parameters for every task, their uncertainty and its diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.diagnostics import Diagnostic, fit_warnings
from mnmt_laws.fitting.evaluator import LawEvaluator
from mnmt_laws.fitting.uncertainty import central_interval, deviation
from mnmt_laws.laws.law import Law
from mnmt_laws.solver.objective import find_objective
from mnmt_laws.tables.observations import Observations

Irreducible = Literal["bound", "known", "ignore"]
"""The use of a known irreducible loss: it bounds L∞ from above, is taken as L∞, or is ignored."""

PriorChoice = Literal["auto", "weak", "none"]
"""Whether parameters have weak priors: where runs are few, always, or never."""

_SYMBOLS = {"alpha": "α", "l_inf": "L∞"}
_TASKS_SHOWN = 5  # by `repr`


@dataclass(frozen=True, kw_only=True, eq=False)
class LawFit:
    """A law fitted to every task of a set of observations; two fits are equal if they are one object."""

    law: Law

    objective: str

    irreducible: Irreducible = "bound"
    """The use of the column `irreducible`: `bound`, `known` or `ignore`."""

    prior: PriorChoice = "none"
    """Whether the parameters have weak priors: `weak` or `none`."""

    effective: Mapping[str, float] = field(default_factory=dict)
    """The number of parameters of each task that the data determine, under priors."""

    parameters: xr.Dataset
    """The estimates over `task` and, where they vary with it, `weight` or `partner`; factors are for
    predictors in their own units."""

    draws: xr.Dataset
    """The same for every refit, over `draw`."""

    converged: bool
    """Whether the search ended at a minimum for every task."""

    diagnostics: tuple[Diagnostic, ...]
    """Parameters that the data do not determine, bounds that were reached, rows that were left out."""

    observations: Observations

    def __repr__(self) -> str:
        """Return law, formula and objective, a line for each task, and the number of warnings."""
        lines = [
            f"LawFit: {self.law.name} law ({self.law.equation}), {self.objective}",
            self.law.formula,
            self._provenance,
            *([f"prior {self.parameters.attrs['prior']}"] if self.prior == "weak" else []),
        ]
        lines += [f"  {task}: {', '.join(cells.values())}" for task, cells in self._summary.items()]
        return "\n".join([*lines, *self._remarks])

    @property
    def tasks(self) -> list[str]:
        """The fitted tasks."""
        return self.evaluator.tasks

    @property
    def sources(self) -> list[str]:
        """The sources of the mixtures: the tasks, and others that a law of whole mixtures distinguishes."""
        return self.evaluator.sources

    @property
    def knows_mixture(self) -> bool:
        """Whether it predicts mixtures that it was not fitted to: by a formula, or between its weights."""
        keyed = bool(self.evaluator.varying)
        return self.law.knows_mixture or (
            keyed and all(len(self.evaluator.fitted_weights(task)) > 1 for task in self.tasks)
        )

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The rows of the observations that the law was fitted to."""
        return self.observations.rows_to_fit(zero_shot=self.law.zero_shot)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The diagnostics of fit and observations in sentences, runs far off the law first."""
        checked = fit_warnings(self.observations, self.law)
        first = [line.message for line in self.diagnostics if line.kind == "far-off"]
        rest = [line.message for line in self.diagnostics if line.kind != "far-off"]
        return (*first, *self.observations.warnings, *checked, *rest)

    @property
    def std(self) -> xr.Dataset:
        """Standard deviation of every parameter over the refits; NaN without refits."""
        return deviation(self.draws)

    def interval(self, level: float = 0.95) -> xr.Dataset:
        """Return the central interval of every parameter over the refits, along `bound` (lower, upper)."""
        return central_interval(self.draws, level)

    def predict(
        self,
        rows: pd.DataFrame | None = None,
        *,
        task: str | None = None,
        weight: ArrayLike = 1.0,
        mixture: Mapping[str, ArrayLike] | None = None,
        draws: bool = False,
        **predictors: ArrayLike,
    ) -> Array:
        """Return the law's metric for rows of observations, or for one task at given predictors.

        Args:
            rows: Rows of observations, which bring their own task, weight and predictors.
            task: A fitted task; may be omitted where there is only one.
            weight: Share of the training mixture, in (0, 1]. Laws with a value for each weight know only the
                fitted ones.
            mixture: Weights of all tasks in place of `weight`; needed by laws of whole mixtures.
            draws: Whether to predict with the parameters of every refit rather than with the estimate.
            **predictors: The law's predictors: `size`, or `tokens`, `encoder_size`, `decoder_size` beside or
                in place of it; numbers or arrays.

        Returns:
            Predictions in the metric's unit: (n,) for n rows, with NaN at a task or weight that the law does
            not know, or in the shape of the arguments broadcast against each other; after (refits,) with
            `draws`.

        Raises:
            ValueError: If the task or the weight was not fitted, or the law needs another predictor.
        """
        parameters = self.draws if draws else self.parameters
        if rows is None:
            name = self.tasks[0] if task is None and len(self.tasks) == 1 else task
            return self.evaluator.predict(parameters, task=name, weight=weight, mixture=mixture, **predictors)
        if task is not None or mixture is not None or predictors:
            raise ArgumentError("`rows` must come alone: they bring their task, weight and predictors.")
        return self.evaluator.predict_rows(parameters, rows, self.observations)

    @cached_property
    def evaluator(self) -> LawEvaluator:
        """The law's formula with the estimates."""
        return LawEvaluator(law=self.law, estimates=self.parameters, rising=self.observations.rising)

    @cached_property
    def fitted_values(self) -> tuple[Array, Array]:
        """Observed and fitted values of every observation that was fitted."""
        rows = self.rows
        predicted = self.predict(rows)
        known = np.isfinite(predicted)
        return rows["value"].to_numpy(float)[known], predicted[known]

    @property
    def scatter(self) -> float:
        """Root mean square of (fitted - observed) / observed over the fitted observations."""
        observed, predicted = self.fitted_values
        return float(np.sqrt(np.mean((predicted / observed - 1) ** 2)))

    def residuals(self) -> Array:
        """Return (n,) residuals of the fitted observations, in the objective's own measure."""
        return find_objective(self.objective).residual(*self.fitted_values)

    def num_parameters(self, task: str) -> float:
        """Return the number of parameters of a task; under priors only as far as the data determine them."""
        self.evaluator.check_task(task)
        if task in self.effective:
            return self.effective[task]
        estimates = self.parameters.sel(task=task)
        return sum(int(estimates[p.name].notnull().sum()) if p.varies else 1 for p in self.law.parameters)

    def fitted_weights(self, task: str) -> Array:
        """Return the weights of `task` that the law was fitted to."""
        self.evaluator.check_task(task)
        if self.evaluator.varying:
            return self.evaluator.fitted_weights(task)
        rows = self.rows
        return np.unique(rows.loc[rows["task"] == task, "weight"].to_numpy())

    @property
    def _provenance(self) -> str:
        attrs, observations = self.parameters.attrs, self.observations
        testset = f" on {observations.testset}" if observations.testset else ""
        uncertainty = "no refits" if not self.draws.sizes["draw"] else attrs["uncertainty"]
        return (
            f"{attrs['num_observations']} values of {observations.metric}{testset} "
            f"from {observations.source}; {uncertainty}; scatter {self.scatter:.2%}"
        )

    @property
    def _summary(self) -> dict[str, dict[str, str]]:
        """Exponents and limits of the first tasks, each as `α 0.31 [0.30, 0.33]`."""
        interval = self.interval()
        names = [p.name for p in self.law.parameters if p.kind in ("exponent", "limit")]
        return {
            task: {
                _SYMBOLS.get(name, name): _describe(
                    _SYMBOLS.get(name, name),
                    self.parameters[name].sel(task=task).to_numpy(),
                    interval[name].sel(task=task).to_numpy(),
                )
                for name in names
            }
            for task in self.tasks[:_TASKS_SHOWN]
        }

    @property
    def _remarks(self) -> list[str]:
        more, count = len(self.tasks) - _TASKS_SHOWN, len(self.warnings)
        lines = [f"  and {more} more tasks"] if more > 0 else []
        lines += [] if self.converged else ["The search did not end at a minimum for every task."]
        return lines + ([f"{count} warning{'s' if count > 1 else ''}: see `warnings`."] if count else [])


def require_fit(fit: object, *, law: str, name: str = "fit") -> None:
    """Check that the argument `name` is a fit of `law`.

    Raises:
        TypeError: If it is not a fit.
        ValueError: If it is a fit of another law.
    """
    require_any_fit(fit, law=law, name=name)
    if isinstance(fit, LawFit) and fit.law.name != law:
        raise ArgumentError(f"`{name}` must be a fit of the {law} law, but is of the {fit.law.name} law.")


def require_mixtures(fit: object, *, fraction: bool = False) -> None:
    """Check that the argument `fit` is a fit of a law that predicts any mixture.

    Args:
        fit: The argument.
        fraction: Whether the law must also have an effective fraction f̂.

    Raises:
        TypeError: If it is not a fit.
        ValueError: If its law predicts only the mixtures that it was fitted to, or has no f̂.
    """
    require_any_fit(fit)
    if isinstance(fit, LawFit) and (not fit.knows_mixture or (fraction and fit.law.fraction is None)):
        what = "with an effective fraction" if fraction else "that predicts any mixture"
        raise ArgumentError(
            f"`fit` must be a fit of a law {what}, such as capacity, but is of the {fit.law.name} law."
        )


def require_any_fit(fit: object, *, law: str = "capacity", name: str = "fit") -> None:
    """Check that the argument `name` is a fit.

    Raises:
        TypeError: If it is not.
    """
    if not isinstance(fit, LawFit):
        raise TypeError(
            f"`{name}` must be what fit(source, law={law!r}) returns, but is {type(fit).__name__}."
        )


def _describe(symbol: str, values: Array, ends: Array) -> str:
    """Return one value with its interval, or the range of values that vary with the weight."""
    known = values[np.isfinite(values)]
    if values.ndim:
        return f"{symbol} {known.min():.3g} to {known.max():.3g} over {len(known)} weights"
    if not np.isfinite(ends).all():
        return f"{symbol} {values:.3g}"
    return f"{symbol} {values:.3g} [{ends[0]:.3g}, {ends[1]:.3g}]"
