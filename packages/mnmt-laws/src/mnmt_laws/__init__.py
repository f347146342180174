"""Scaling laws of multilingual translation (Fernandes et al. 2023), fitted to tables of losses.

`read_table` and `select` give observations, `fit` a law; `effective_fractions`, `frontier`, `recommend`,
`predict_held_out` and `check_claims` follow from fits, and `build_report` does it all.
"""

from mnmt_laws.claims import Claim, check_claims
from mnmt_laws.collect import Collected, collect
from mnmt_laws.effective import EffectiveFractions, effective_fractions, fitted_fraction
from mnmt_laws.errors import TableError
from mnmt_laws.fit import fit
from mnmt_laws.frontier import Recommendation, frontier, observed_pairs, recommend
from mnmt_laws.heldout import HeldOut, compare_irreducible, predict_held_out
from mnmt_laws.observations import Observations, select
from mnmt_laws.report import Report, build_report
from mnmt_laws.results import LawFit
from mnmt_laws.simulate import TaskLaw, simulate
from mnmt_laws.table import RunTable, read_table
from mnmt_laws.uncertainty import ClusterBootstrap, Perturbation, ResidualBootstrap

__all__ = [
    "Claim",
    "ClusterBootstrap",
    "Collected",
    "EffectiveFractions",
    "HeldOut",
    "LawFit",
    "Observations",
    "Perturbation",
    "Recommendation",
    "Report",
    "ResidualBootstrap",
    "RunTable",
    "TableError",
    "TaskLaw",
    "build_report",
    "check_claims",
    "collect",
    "compare_irreducible",
    "effective_fractions",
    "fit",
    "fitted_fraction",
    "frontier",
    "observed_pairs",
    "predict_held_out",
    "read_table",
    "recommend",
    "select",
    "simulate",
]
