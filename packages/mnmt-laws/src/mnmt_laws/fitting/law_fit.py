"""What a fit returns: labelled parameters, their uncertainty, and everything that limits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.diagnostics import Diagnostic
from mnmt_laws.fitting.evaluator import partner_shares, predictors_of
from mnmt_laws.fitting.uncertainty import central_interval, deviation
from mnmt_laws.laws.law import Law
from mnmt_laws.solver.objective import find_objective
from mnmt_laws.tables.observations import Observations

_SAME_WEIGHT = 1e-9


@dataclass(frozen=True, kw_only=True)
class LawFit:
    """A law fitted to every task of a set of observations."""

    law: Law

    objective: str

    delta: float | None = None
    """Where `huber` turns from squares to absolute values, if not at the default."""

    parameters: xr.Dataset
    """The estimates over `task` and, where they vary with it, `weight` or `partner`; factors are for
    predictors in their own units."""

    draws: xr.Dataset
    """The same for every refit, over `draw`."""

    converged: bool
    """Whether the search ended at a minimum for every task."""

    diagnostics: tuple[Diagnostic, ...]
    """What the data do not determine, which bounds were reached, what was left out."""

    observations: Observations

    @property
    def tasks(self) -> list[str]:
        """Fitted tasks."""
        return [str(task) for task in self.parameters.task.values]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The diagnostics of fit and observations in sentences."""
        return (*self.observations.warnings, *(line.message for line in self.diagnostics))

    @property
    def std(self) -> xr.Dataset:
        """Standard deviation of every parameter over the refits; NaN without refits."""
        return deviation(self.draws)

    def interval(self, level: float = 0.95) -> xr.Dataset:
        """Central interval of every parameter over the refits, along `bound` (lower, upper)."""
        return central_interval(self.draws, level)

    def predict(
        self,
        *,
        task: str,
        weight: ArrayLike = 1.0,
        mixture: Mapping[str, ArrayLike] | None = None,
        **predictors: ArrayLike,
    ) -> Array:
        """The law's metric for a task.

        Args:
            task: A fitted task.
            weight: Share of the training mixture, in (0, 1]. Laws with a value for each weight know only the
                fitted ones.
            mixture: Weights of all tasks in place of `weight`; needed by laws of whole mixtures.
            predictors: What the law takes: `size`, or `tokens`, `encoder_size`, `decoder_size` beside or in
                place of it; numbers or arrays.

        Returns:
            Predictions in the shape of the arguments broadcast against each other, in the metric's unit.

        Raises:
            ValueError: If the task or the weight was not fitted, or the law needs another predictor.
        """
        return self._evaluate(self.parameters, task, weight, mixture, predictors)

    def predict_draws(
        self,
        *,
        task: str,
        weight: ArrayLike = 1.0,
        mixture: Mapping[str, ArrayLike] | None = None,
        **predictors: ArrayLike,
    ) -> Array:
        """`predict` for every refit, in shape (refits, ...)."""
        return self._evaluate(self.draws, task, weight, mixture, predictors)

    def predict_rows(self, rows: pd.DataFrame) -> Array:
        """(n,) predictions for rows of observations; NaN at a task or weight that the law does not know."""
        return self._evaluate_rows(self.parameters, rows)

    def predict_row_draws(self, rows: pd.DataFrame) -> Array:
        """(refits, n) `predict_rows` for every refit."""
        return self._evaluate_rows(self.draws, rows)

    def _evaluate_rows(self, parameters: xr.Dataset, rows: pd.DataFrame) -> Array:
        draws = (parameters.sizes["draw"],) if "draw" in parameters.sizes else ()
        predicted = np.full((*draws, len(rows)), np.nan)
        for task in self.tasks:
            here = self._known(task, rows)
            if here.any():
                own = rows[here]
                x, partners = predictors_of(
                    own, self.law.predictors, task=task, observations=self.observations
                )
                aligned = self._aligned(x, partners)
                predicted[..., here] = self._formula(
                    parameters.sel(task=task), aligned, own["weight"].to_numpy()
                )
        return predicted

    def _known(self, task: str, rows: pd.DataFrame) -> NDArray[np.bool_]:
        """(n,) whether a row is of the task and at a weight that the law can predict."""
        here: NDArray[np.bool_] = rows["task"].eq(task).to_numpy() & rows["weight"].gt(0).to_numpy()
        if not self._weights_matter:
            return here
        near = np.abs(rows["weight"].to_numpy()[:, None] - self.fitted_weights(task)) <= _SAME_WEIGHT
        return here & near.any(axis=1)

    def predict_mixture(
        self, *, size: ArrayLike, mixture: Mapping[str, ArrayLike], draws: bool = False
    ) -> xr.DataArray:
        """The law's metric for every task of some mixtures.

        Args:
            size: N, parameters; a number or an array.
            mixture: Weights in (0, 1] of every fitted task, arrays broadcast against each other and `size`.
            draws: Whether to predict for every refit rather than for the estimate.

        Returns:
            Predictions over (task, point), or (draw, task, point); points in the flattened broadcast shape.

        Raises:
            ValueError: If a task has no weight.
        """
        missing = [task for task in self.tasks if task not in mixture]
        if missing:
            raise ValueError(f"`mixture` must give a weight to {missing[0]}, but names {', '.join(mixture)}.")
        shape = np.broadcast_shapes(*(np.shape(value) for value in (size, *mixture.values())))
        flat = {task: np.broadcast_to(weight, shape).ravel() for task, weight in mixture.items()}
        sizes, source = np.broadcast_to(size, shape).ravel(), self.draws if draws else self.parameters
        parts = [self._evaluate(source, task, flat[task], flat, {"size": sizes}) for task in self.tasks]
        dims = ("draw", "task", "point") if draws else ("task", "point")
        return xr.DataArray(np.stack(parts, axis=-2), dims=dims, coords={"task": self.tasks})

    def predict_own_mixtures(self, *, size: float, points: Array, draws: bool = True) -> Array:
        """The metric of every task where each refit has mixtures of its own.

        Args:
            size: N, parameters.
            points: (refits or 1, n, tasks) weights above 0, in the order of `tasks`.
            draws: Whether to predict for every refit rather than for the estimate, which is then the only
                one.

        Returns:
            (refits, tasks, n) predictions.
        """
        source, sign = self.draws if draws else self.parameters, -1 if self.observations.rising else 1
        predicted = []
        for task in self.tasks:
            x, values = self.seen_at(source, task, points)
            x["size"] = np.asarray(size, float)
            predicted.append(self.law.predict(x, values, sign))
        return np.stack(predicted, axis=1)

    def seen_at(
        self, parameters: xr.Dataset, task: str, points: Array
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Predictors and parameters of a task for mixtures (refits or 1, n, tasks)."""
        weight = points[..., self.tasks.index(task)]
        x = {"weight": weight}
        if "partners" in self.law.predictors:
            x["partners"] = self._shares_beside(task, points)
        return x, self.seen(parameters.sel(task=task), weight)

    def noise(self, task: str) -> float:
        """Relative standard deviation of a model about the law; NaN where no observation is to spare."""
        rows = self.observations.fit
        own = rows[rows["task"] == task]
        relative = self.predict_rows(own) / own["value"].to_numpy(float) - 1
        known = relative[np.isfinite(relative)]
        spare = len(known) - self.num_parameters(task)
        return float(np.sqrt(np.sum(known**2) / spare)) if spare > 0 else float("nan")

    @property
    def scatter(self) -> float:
        """Root mean square of (fitted - observed) / observed over the fitted observations."""
        observed, predicted = self.fitted_values
        return float(np.sqrt(np.mean((predicted / observed - 1) ** 2)))

    def residuals(self) -> Array:
        """(n,) residuals of the fitted observations, in the objective's own measure."""
        return find_objective(self.objective, delta=self.delta).residual(*self.fitted_values)

    @cached_property
    def fitted_values(self) -> tuple[Array, Array]:
        """Observed and fitted values of every observation that was fitted."""
        rows = self.observations.fit
        predicted = self.predict_rows(rows)
        known = np.isfinite(predicted)
        return rows["value"].to_numpy(float)[known], predicted[known]

    def num_parameters(self, task: str) -> int:
        """How many parameters a task's fit chose."""
        own = self.parameters.sel(task=task)
        return sum(int(own[p.name].notnull().sum()) if p.varies else 1 for p in self.law.parameters)

    def fitted_weights(self, task: str) -> Array:
        """Weights of `task` that the law was fitted to."""
        if not self._weights_matter:
            rows = self.observations.fit
            return np.unique(rows.loc[rows["task"] == task, "weight"].to_numpy())
        own = self.parameters[self._varying[0]].sel(task=task)
        weights: Array = own.dropna("weight").weight.to_numpy()
        return weights

    @property
    def _varying(self) -> list[str]:
        return [parameter.name for parameter in self.law.parameters if parameter.varies == "weight"]

    @property
    def _weights_matter(self) -> bool:
        return bool(self._varying)

    def _evaluate(
        self,
        parameters: xr.Dataset,
        task: str,
        weight: ArrayLike,
        mixture: Mapping[str, ArrayLike] | None,
        predictors: Mapping[str, ArrayLike],
    ) -> Array:
        x, shape = self.inputs(task, weight=weight, mixture=mixture, **predictors)
        predicted = self._formula(parameters.sel(task=task), x, x["weight"])
        return predicted.reshape((*predicted.shape[:-1], *shape))

    def inputs(
        self,
        task: str,
        *,
        weight: ArrayLike,
        mixture: Mapping[str, ArrayLike] | None,
        **predictors: ArrayLike,
    ) -> tuple[dict[str, Array], tuple[int, ...]]:
        """What the law's formula takes, flat, and the shape that the arguments broadcast to."""
        if task not in self.tasks:
            raise ValueError(f"`task` must be one of {', '.join(self.tasks)}, but is {task!r}.")
        given = {"weight": weight if mixture is None else mixture[task], **predictors}
        shape = np.broadcast_shapes(*(np.shape(value) for value in given.values()))
        x = {name: np.broadcast_to(np.asarray(value, float), shape).ravel() for name, value in given.items()}
        self._check(x)
        if "partners" in self.law.predictors:
            x["partners"] = self._partners(task, mixture, x["weight"])
        return x, shape

    def seen(self, parameters: xr.Dataset, weight: Array) -> dict[str, Array]:
        """One task's parameters as each point sees them: (..., n), (..., 1), or (..., partners)."""
        return {str(name): self._seen(variable, weight) for name, variable in parameters.data_vars.items()}

    def _check(self, x: Mapping[str, Array]) -> None:
        needed = [name for name in self.law.predictors if name not in (*x, "partners")]
        if needed:
            raise ValueError(f"`{needed[0]}` must be given: the {self.law.name} law predicts from it.")
        if bool(((x["weight"] <= 0) | (x["weight"] > 1)).any()):
            raise ValueError("`weight` must be in (0, 1]: the laws do not speak of zero-shot tasks.")

    def _partners(self, task: str, mixture: Mapping[str, ArrayLike] | None, weight: Array) -> Array:
        """(n, partners) of each point; a lone partner has all that the task leaves."""
        names = [str(name) for name in self.parameters.partner.values]
        if mixture is None:
            others = [name for name in names if name != task]
            if len(others) > 1 and bool((weight < 1).any()):
                raise ValueError(f"`mixture` must be given: {task} has {len(others)} partners.")
            mixture = dict.fromkeys(others, 1.0 - weight)
        shares = [np.broadcast_to(mixture.get(name, 0.0), weight.shape) for name in names if name != task]
        table = partner_shares(np.stack(shares, axis=1).astype(float))
        return self._aligned({"partners": table}, tuple(name for name in names if name != task))["partners"]

    def _shares_beside(self, task: str, points: Array) -> Array:
        """(..., n, partners) each partner's share of what `task` leaves, of mixtures (..., n, tasks)."""
        names = [str(name) for name in self.parameters.partner.values]
        kept = [self.tasks.index(name) if name in self.tasks and name != task else -1 for name in names]
        padded = np.concatenate([points, np.zeros((*points.shape[:-1], 1))], axis=-1)[..., kept]
        return np.asarray(padded / np.maximum(padded.sum(axis=-1, keepdims=True), 1e-300))

    def _aligned(self, x: dict[str, Array], partners: tuple[str, ...]) -> dict[str, Array]:
        """Partners' shares in the order of the parameters; one that the fit never saw has no column."""
        if "partners" not in x:
            return x
        names = [str(name) for name in self.parameters.partner.values]
        table = np.zeros((len(x["partners"]), len(names)))
        for column, name in enumerate(partners):
            if name in names:
                table[:, names.index(name)] = x["partners"][:, column]
        return {**x, "partners": table}

    def _formula(self, own: xr.Dataset, x: Mapping[str, Array], weight: Array) -> Array:
        """(n,) or (refits, n) predictions from one task's parameters."""
        values = self.seen(own, weight)
        sign = -1 if self.observations.rising else 1
        predicted = self.law.predict(x, values, sign)
        return np.broadcast_to(predicted, (*predicted.shape[:-1], len(weight)))

    def _seen(self, variable: xr.DataArray, weight: Array) -> Array:
        """A parameter as each point sees it: (..., n), (..., 1), or (..., partners) with 0 where unknown."""
        if "weight" in variable.dims:
            values = variable.transpose(..., "weight").to_numpy()
            return np.asarray(values[..., self._nearest(variable, weight)])
        if "partner" in variable.dims:
            return np.asarray(np.nan_to_num(variable.transpose(..., "partner").to_numpy()))
        return np.asarray(variable.to_numpy()[..., None])

    def _nearest(self, variable: xr.DataArray, weight: Array) -> Array:
        estimate = self.parameters[variable.name].sel(task=variable.task.item())
        known = np.flatnonzero(estimate.notnull().to_numpy())
        weights = variable.weight.to_numpy()[known]
        distance = np.abs(weight[:, None] - weights)
        if bool((distance.min(axis=1) > _SAME_WEIGHT).any()):
            shown = ", ".join(f"{value:g}" for value in weights)
            raise ValueError(
                f"`weight` must be one of the fitted weights ({shown}); the capacity law takes any weight."
            )
        return np.asarray(known[distance.argmin(axis=1)])
