"""The law that describes a table: of those with a formula of the mixture, the one of least BIC."""

from __future__ import annotations

from mnmt_laws.answers.comparison.contest import LawComparison
from mnmt_laws.answers.comparison.verdict import pool
from mnmt_laws.forecasts.rivals import is_mixed, usual_law
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations


def preferred_law(observations: Observations, comparison: LawComparison | None = None) -> Law:
    """Return the law of least BIC among rivals with a formula of the mixture that are no rulers.

    Where there is none it is the usual one for the table.

    Args:
        observations: The observations to fit.
        comparison: Rival laws of these observations, where they were compared.
    """
    if comparison is not None:
        ranking = pool(comparison.table, comparison.errors)
        for law in (comparison.fits[str(name)].law for name in ranking.index):
            if not law.ruler and (law.knows_mixture or not is_mixed(observations)):
                return law
    return usual_law(observations)
