"""Scaling laws of multilingual translation (Fernandes et al. 2023), fitted to tables of losses.

`read_table` and `select` give observations, `fit` a law. From fits follow `effective_fractions`,
`frontier`, `recommend`, `meet_targets`, `smallest_size`, `design` and `predict_held_out`; `compare` asks
which parameter the mixture acts through, and `build_report` puts all of it on a page.
"""

from mnmt_laws.answers.claims import Claim, check_claims
from mnmt_laws.answers.comparison import Comparison, compare
from mnmt_laws.answers.fractions import (
    EffectiveFractions,
    effective_fractions,
    fitted_fraction,
    fractions_of_testsets,
)
from mnmt_laws.answers.frontier import frontier, observed_pairs
from mnmt_laws.answers.next_runs import Design, design
from mnmt_laws.answers.predictions import (
    HeldOut,
    MoreTasks,
    compare_irreducible,
    predict_held_out,
    predict_more_tasks,
)
from mnmt_laws.answers.quality import pair_metrics, quality_lines
from mnmt_laws.answers.recommendation import Recommendation, recommend
from mnmt_laws.answers.simulation import TaskLaw, simulate
from mnmt_laws.answers.targets import SmallestSize, TargetMixture, meet_targets, smallest_size
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.convergence import Correction, correct_convergence
from mnmt_laws.fitting.diagnostics import Diagnostic
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.profile import profile_intervals
from mnmt_laws.fitting.storage import load, save
from mnmt_laws.fitting.uncertainty import ClusterBootstrap, Perturbation, ResidualBootstrap
from mnmt_laws.report.build import Report, build_report
from mnmt_laws.tables.collect import Collected, collect
from mnmt_laws.tables.grid import to_dataset
from mnmt_laws.tables.observations import Observations, learning_curves, select
from mnmt_laws.tables.table import RunTable, example_table, read_table

__all__ = [
    "Claim",
    "ClusterBootstrap",
    "Collected",
    "Comparison",
    "Correction",
    "Design",
    "Diagnostic",
    "EffectiveFractions",
    "HeldOut",
    "LawFit",
    "MoreTasks",
    "Observations",
    "Perturbation",
    "Recommendation",
    "Report",
    "ResidualBootstrap",
    "RunTable",
    "SmallestSize",
    "TableError",
    "TargetMixture",
    "TaskLaw",
    "build_report",
    "check_claims",
    "collect",
    "compare",
    "compare_irreducible",
    "correct_convergence",
    "design",
    "effective_fractions",
    "example_table",
    "fit",
    "fitted_fraction",
    "fractions_of_testsets",
    "frontier",
    "learning_curves",
    "load",
    "meet_targets",
    "observed_pairs",
    "pair_metrics",
    "predict_held_out",
    "predict_more_tasks",
    "profile_intervals",
    "quality_lines",
    "read_table",
    "recommend",
    "save",
    "select",
    "simulate",
    "smallest_size",
    "to_dataset",
]
