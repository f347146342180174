"""What a fit returns: labelled parameters, their uncertainty, and everything that limits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mnmt_laws.laws import Law
from mnmt_laws.objective import OBJECTIVES, Array
from mnmt_laws.observations import Observations
from mnmt_laws.spread import central_interval, deviation


@dataclass(frozen=True, kw_only=True)
class LawFit:
    """A law fitted to every task of a set of observations."""

    law: Law

    objective: str

    parameters: xr.Dataset
    """The estimates over `task` and, where they vary with it, `weight`; β is for N in parameters."""

    draws: xr.Dataset
    """The same for every refit to perturbed values, over `draw`."""

    converged: bool
    """Whether the search ended at a minimum for every task."""

    warnings: tuple[str, ...]
    """What the data do not determine, and which bounds were reached."""

    observations: Observations

    @property
    def tasks(self) -> list[str]:
        """Fitted tasks."""
        return [str(task) for task in self.parameters.task.values]

    @property
    def std(self) -> xr.Dataset:
        """Standard deviation of every parameter over the refits; NaN without refits."""
        return deviation(self.draws)

    def interval(self, level: float = 0.95) -> xr.Dataset:
        """Central interval of every parameter over the refits, along `bound` (lower, upper)."""
        return central_interval(self.draws, level)

    def predict(self, *, size: ArrayLike, task: str, weight: ArrayLike) -> Array:
        """The law's metric for a task.

        Args:
            size: N, parameters; a number or an array.
            task: A fitted task.
            weight: Share of the training mixture, broadcast against `size`. The joint and per-weighting laws
                know only the fitted weights.

        Returns:
            Predictions in the shape of `size` broadcast against `weight`, in the metric's unit.

        Raises:
            ValueError: If the task or the weight was not fitted.
        """
        return self._evaluate(self.parameters, size, task, weight)

    def predict_draws(self, *, size: ArrayLike, task: str, weight: ArrayLike) -> Array:
        """`predict` for every refit, in shape (refits, ...)."""
        return self._evaluate(self.draws, size, task, weight)

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
        evaluate = self.predict_draws if draws else self.predict
        shape = np.broadcast_shapes(*(np.shape(value) for value in (size, *mixture.values())))
        parts = [
            evaluate(
                size=np.broadcast_to(size, shape).ravel(),
                task=task,
                weight=np.broadcast_to(mixture[task], shape).ravel(),
            )
            for task in self.tasks
        ]
        dims = ("draw", "task", "point") if draws else ("task", "point")
        return xr.DataArray(np.stack(parts, axis=-2), dims=dims, coords={"task": self.tasks})

    @property
    def scatter(self) -> float:
        """Root mean square of (fitted - observed) / observed over the fitted observations."""
        observed, predicted = self._fitted_values()
        return float(np.sqrt(np.mean((predicted / observed - 1) ** 2)))

    def residuals(self) -> Array:
        """(n,) residuals of the fitted observations, in the objective's own measure."""
        return OBJECTIVES[self.objective].residuals(*self._fitted_values())

    def fitted_weights(self, task: str) -> Array:
        """Weights of `task` that the law was fitted to."""
        if "weight" not in self.parameters.coords:
            rows = self.observations.fit
            return np.unique(rows.loc[rows["task"] == task, "weight"].to_numpy())
        weights: Array = self.parameters.beta.sel(task=task).dropna("weight").weight.to_numpy()
        return weights

    def _fitted_values(self) -> tuple[Array, Array]:
        """Observed and fitted values of every observation at a fitted weight."""
        observed, predicted = [], []
        for task, own in self.observations.fit.groupby("task"):
            known = own[own["weight"].isin(self.fitted_weights(str(task)))]
            observed.append(known["value"].to_numpy(float))
            predicted.append(self.predict(size=known["size"], task=str(task), weight=known["weight"]))
        return np.concatenate(observed), np.concatenate(predicted)

    def _evaluate(self, parameters: xr.Dataset, size: ArrayLike, task: str, weight: ArrayLike) -> Array:
        if task not in self.tasks:
            raise ValueError(f"`task` must be one of {', '.join(self.tasks)}, but is {task!r}.")
        sizes, weights = np.broadcast_arrays(np.asarray(size, float), np.asarray(weight, float))
        points = [xr.DataArray(values.ravel(), dims="point") for values in (sizes, weights)]
        sign = -1 if self.observations.rising else 1
        predicted = self.law.predict(parameters.sel(task=task), points[0], points[1], sign)
        order = [dim for dim in ("draw", "point") if dim in predicted.dims]
        values = predicted.transpose(*order).to_numpy()
        return values.reshape((*values.shape[:-1], *sizes.shape))
