"""The uncertainty of a quantity after further runs, by a linear-Gaussian update over the refits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.answers.design.candidates import CandidateRun
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit, relative_noise

_FEWEST = 10  # finite refits


@dataclass(frozen=True, kw_only=True)
class Beliefs:
    """The joint normal distribution of a quantity and of every candidate's losses, from the refits.

    The covariance of two numbers is aᵀ M b, where a and b hold their deviations from the mean in every refit.
    So training a run changes only M.
    """

    quantity: Array
    """(refits,) the quantity less its mean."""

    losses: Array
    """(candidates, refits, tasks) the losses less their means; 0 for tasks that a run does not measure."""

    noise: Array
    """(candidates, tasks) variance of a measurement about the law."""

    metric: Array
    """(refits, refits) M."""

    @classmethod
    def of(cls, fit: LawFit, quantity: Array, options: Sequence[CandidateRun]) -> Beliefs:
        """Return the beliefs before any run.

        Raises:
            ArgumentError: If the quantity does not vary over the refits.
        """
        finite = np.isfinite(quantity)
        count = int(finite.sum())
        if count < _FEWEST or np.ptp(quantity[finite]) == 0:
            raise ArgumentError(
                "`quantity` must vary over the refits, but does not; no run can make it more certain."
            )
        predicted, measured = _losses(fit, options)
        scatter = np.array([relative_noise(fit, task) for task in fit.tasks])
        if not np.isfinite(scatter).all():
            raise ArgumentError(
                "`fit` must leave degrees of freedom to every task, which measure the noise; add runs."
            )
        noise = np.where(measured, (predicted.mean(axis=1) * scatter) ** 2, 1.0)
        about = np.where(measured[:, None, :], predicted - predicted.mean(axis=1, keepdims=True), 0.0)
        about = about[:, finite, :]
        return cls(
            quantity=quantity[finite] - quantity[finite].mean(),
            losses=about - about.mean(axis=1, keepdims=True),
            noise=np.maximum(noise, 1e-300),
            metric=np.eye(count) / (count - 1),
        )

    @property
    def variance(self) -> float:
        """The variance of the quantity."""
        return max(float(self.quantity @ self.metric @ self.quantity), 0.0)

    def variances_after(self) -> Array:
        """Return (candidates,) the variance of the quantity once each candidate is trained."""
        weighted = self.metric @ self.losses
        shared = np.einsum("r,crk->ck", self.quantity, weighted)
        covariance = np.einsum("crj,crk->cjk", self.losses, weighted)
        gain = np.linalg.solve(self._with_noise(covariance, self.noise), shared[..., None])[..., 0]
        return np.asarray(np.maximum(self.variance - np.sum(shared * gain, axis=1), 0.0))

    def after(self, candidate: int) -> Beliefs:
        """Return the beliefs once a candidate is trained."""
        # cov(a, b) = aᵀMb; conditioning on y + noise Σ gives aᵀ(M - M Y (YᵀMY + Σ)⁻¹ YᵀM) b.
        weighted = self.metric @ self.losses[candidate]
        covariance = self._with_noise(self.losses[candidate].T @ weighted, self.noise[candidate])
        return replace(self, metric=self.metric - weighted @ np.linalg.solve(covariance, weighted.T))

    @staticmethod
    def _with_noise(covariance: Array, noise: Array) -> Array:
        """Return (…, tasks, tasks) covariances with the variance of measurements on their diagonals."""
        return np.asarray(covariance + noise[..., None] * np.eye(noise.shape[-1]))


def _losses(fit: LawFit, options: Sequence[CandidateRun]) -> tuple[Array, NDArray[np.bool_]]:
    """Return (candidates, refits, tasks) predictions, and (candidates, tasks) whether a run measures them."""
    weights = np.array([[option.mixture.get(source, 0.0) for source in fit.sources] for option in options])
    trained = np.array([[option.mixture.get(task, 0.0) > 0 for task in fit.tasks] for option in options])
    measured = trained | fit.law.zero_shot
    if not fit.law.zero_shot:
        weights = np.maximum(weights, 1e-9)
    beside = {
        name: np.array([[getattr(option, name) for option in options]], float)
        for name in ("size", "tokens")
        if name in fit.law.predictors
    }
    predicted = fit.evaluator.predict_points(fit.draws, points=weights[None], **beside)
    known = np.where(np.isfinite(predicted), predicted, 0.0)
    return np.moveaxis(known, -1, 0), measured
