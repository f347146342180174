"""The law that describes a table: of those with a formula of the mixture, the one of least BIC."""

from __future__ import annotations

from mnmt_laws.answers.comparison.contest import LawComparison
from mnmt_laws.answers.comparison.verdict import pool
from mnmt_laws.fitting.fit import differ_at_same_weight
from mnmt_laws.forecasts.rivals import lengths_vary
from mnmt_laws.laws import LAWS, LawName
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
    return LAWS[usual_law(observations)]


def is_mixed(observations: Observations) -> bool:
    """Return whether models of several mixtures were trained."""
    rows = observations.rows_to_fit(zero_shot=True)
    return rows["weight"].nunique() > 1 or rows["mixture"].nunique() > 1


def usual_law(observations: Observations, *, length: bool | None = None) -> LawName:
    """Return the name of the law that suits the table's models, without a look at their losses.

    Args:
        observations: The observations to fit.
        length: Whether the law should know the training length; by default where lengths vary.
    """
    rows = observations.rows_to_fit(zero_shot=True)
    longer = lengths_vary(observations.fit) if length is None else length
    if rows["weight"].eq(0).all():
        return "transfer-share" if longer else "transfer-capacity"
    trained = rows[rows["weight"] > 0]
    if not is_mixed(observations):
        return "chinchilla" if longer else "power"
    whole = any(
        differ_at_same_weight(task_rows, observations, str(task))
        for task, task_rows in trained.groupby("task")
    )
    if whole:
        return "simplex-share" if longer else "simplex-capacity"
    return "share-tied" if longer else "capacity"
