"""Fits of laws to observations: estimates, refits, intervals and diagnostics."""

from mnmt_laws.fitting.diagnostics import Diagnostic
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import ClusterBootstrap, Perturbation, ResidualBootstrap, Uncertainty

__all__ = [
    "ClusterBootstrap",
    "Diagnostic",
    "LawFit",
    "Perturbation",
    "ResidualBootstrap",
    "Uncertainty",
]
