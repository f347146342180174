"""f̂ with transfer between tasks: a constant elasticity of substitution between the sources of a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.exposure import own_share, power_of_share, transfer
from mnmt_laws.laws.law import Parameter, Values


@dataclass(frozen=True)
class TransferFraction:
    """f̂_i(p) = ((τ_0 + p_i^ρ + Σ_{j≠i} τ_j p_j^ρ) / (τ_0 + 1))^(1/ρ), our form for any mixture, 0 included.

    τ_j is the worth of a partner to the task, and τ_0 that of no training at all. ρ says how well sources
    replace each other: perfectly at 1, where only Σ τ_j p_j counts; below 1 a little of each is worth more
    than much of one. For a task that is no source, the reference takes its place.
    """

    predictors: ClassVar[tuple[str, ...]] = ("weight", "partners")
    regions: ClassVar[tuple[Mapping[str, tuple[float, float]], ...]] = ({},)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """τ for each partner, τ_0 and ρ."""
        floor = Parameter(
            name="tau_0", meaning="worth τ_0 of no training at all", kind="shape",
            bounds=(1e-6, 10.0), starts=(0.003, 0.1),
        )  # fmt: skip
        substitution = Parameter(
            name="rho", meaning="exponent ρ of substitution between sources", kind="shape",
            bounds=(0.05, 4.0), starts=(0.3, 0.8),
        )  # fmt: skip
        return transfer("tau", "worth τ of a partner"), floor, substitution

    def share(self, x: Values, theta: Values) -> Array:
        """Return f̂ of every observation."""
        return np.asarray(np.exp(self._log_total(x, theta)[0] / theta["rho"]))

    def slopes(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return ∂f̂/∂τ, with an axis over partners, ∂f̂/∂τ_0 and ∂f̂/∂ρ."""
        log_total, total, by_exponent, partners = self._log_total(x, theta)
        scale = np.exp(log_total / theta["rho"]) / theta["rho"]
        return {
            "tau": (scale / total)[..., None] * partners,
            "tau_0": scale * (1.0 / total - 1.0 / (1.0 + theta["tau_0"])),
            "rho": scale * (by_exponent / total - log_total / theta["rho"]),
        }

    def _log_total(self, x: Values, theta: Values) -> tuple[Array, Array, Array, Array]:
        """Return the logarithm of f̂^ρ, its numerator, ∂numerator/∂ρ and (..., n, P) partners^ρ."""
        share, share_slope = power_of_share(own_share(x), theta["rho"])
        partners, partner_slopes = power_of_share(x["partners"], theta["rho"][..., None])
        worth = theta["tau"][..., None, :]
        total = theta["tau_0"] + share + np.sum(worth * partners, axis=-1)
        by_exponent = share_slope + np.sum(worth * partner_slopes, axis=-1)
        return np.log(total) - np.log1p(theta["tau_0"]), total, by_exponent, partners
