"""The verdict of a comparison: the preferred law, or the reasons why it is undecided."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import f as f_distribution

from mnmt_laws.answers.claims import lines_of_bounds
from mnmt_laws.answers.comparison.evidence import SharedErrors, criteria_of, simulate_contest
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.noise import measure_noise, task_residuals
from mnmt_laws.fitting.refits import refit_like
from mnmt_laws.forecasts.rivals import is_keyed, label_of, story_of

CLEAR = 2.0
"""Difference in BIC below which two laws count as equal."""

_POWER = 0.8  # least share of tables simulated from the rival on which the rival must win clearly
_WRONG = 0.02  # greatest share of such tables on which the winner may lead by at least its gap
_NARROW = (
    10.0  # BIC by which a gap must exceed what chance gives to refute a rival; very strong (Raftery 1995)
)
_MOST_RIVALS = 3
_LIMITS = np.linspace(0.0, 1.0, 6)  # shares of the greatest admissible L∞ at which laws are compared
_TABLES = 100


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The preferred law, or the reasons why there is none."""

    ranking: pd.Series
    """Pooled BIC by law, ascending, without laws that cannot be compared."""

    best: str
    """The preferred law; empty if undecided."""

    reasons: tuple[str, ...]
    """Sentences: why the comparison is undecided; empty if it is decided."""


def pool(table: pd.DataFrame, errors: SharedErrors) -> pd.Series:
    """Return each law's BIC, summed over tasks and divided by the design effect, in ascending order.

    A law whose BIC is unknown in some task is left out.
    """
    total = table.groupby("law", sort=False)["bic"].sum(min_count=table["task"].nunique())
    return (total / errors.design_effect).dropna().sort_values(kind="stable")


def leaders(ranking: pd.Series) -> pd.Series:
    """Return the best law of each meaning, in ascending order."""
    stories = [story_of(str(law)) for law in ranking.index]
    return ranking[~pd.Series(stories, index=ranking.index).duplicated()]


def decide(
    fits: Mapping[str, LawFit],
    ranking: pd.Series,
    errors: SharedErrors,
    *,
    tables: int = _TABLES,
) -> Verdict:
    """Return the preferred law if every check lets it stand, or the reasons against.

    - The pooled BIC of the best law must be lower by more than 2 than that of every law of another meaning.
    - No exponent of the winner or the runner-up may lie at a bound, and no limit that the winner lets vary.
    - No other admissible L∞ may change the winner.
    - On tables simulated from a rival's fit, the winner may lead by at least its gap in no more than 2%. The
      rival must also win clearly in 80%, unless the gap exceeds by 10 what 98% of these tables give: a rival
      that is refuted needs no such power.
    """
    first = leaders(ranking)
    if len(first) < 2:
        return Verdict(ranking=ranking, best="", reasons=_nothing_to_compare(fits, ranking))
    winner, gaps = str(first.index[0]), first.iloc[1:] - first.iloc[0]
    close = [str(law) for law in gaps.index[gaps <= CLEAR]]
    if close:
        named = _join([f"“{label_of(law)}”" for law in close])
        reason = f"The BIC of “{label_of(winner)}” and {named} differ by less than {CLEAR:g}."
        return Verdict(ranking=ranking, best="", reasons=(reason,))
    rivals = [str(law) for law in gaps.index[:_MOST_RIVALS]]
    reasons = [*_bounds(fits, winner, rivals[0]), *_limits(fits, winner, rivals, errors)]
    for rival in rivals:
        if tables and not _richer(fits[rival], fits[winner]):
            reasons += _simulated(fits[winner], fits[rival], float(gaps[rival]), errors, tables)
    return Verdict(ranking=ranking, best="" if reasons else winner, reasons=tuple(reasons))


def _nothing_to_compare(fits: Mapping[str, LawFit], ranking: pd.Series) -> tuple[str, ...]:
    if ranking.empty:
        return ("Every law has a parameter for every value.",)
    others = [f"“{label_of(law)}”" for law in fits if law not in ranking.index]
    if others:
        verb = "has" if len(others) == 1 else "have"
        return (f"{_join(others)} {verb} a parameter for every value.",)
    return ("No law of another meaning can be compared on this table.",)


def _richer(rival: LawFit, winner: LawFit) -> bool:
    """Return whether a rival fits better with more parameters: only parsimony speaks against it."""
    more = sum(rival.num_parameters(task) - winner.num_parameters(task) for task in winner.tasks)
    return more > 0 and _squares(rival) <= _squares(winner)


def _squares(fit: LawFit) -> float:
    return float(np.sum(fit.residuals() ** 2))


def _bounds(fits: Mapping[str, LawFit], winner: str, rival: str) -> list[str]:
    """Return a sentence for each of the two laws whose decisive parameters lie at bounds."""
    reasons = []
    for law in (winner, rival):
        fit = fits[law]
        decisive = {
            parameter.name
            for parameter in fit.law.parameters
            if parameter.kind == "exponent"
            or (parameter.kind == "limit" and parameter.varies and law == winner)
        }
        at_bound = lines_of_bounds(fit, decisive)
        if at_bound:
            reasons.append(f"“{label_of(law)}” rests on a bound: {at_bound[0].message}")
    return reasons


def _limits(fits: Mapping[str, LawFit], winner: str, rivals: list[str], errors: SharedErrors) -> list[str]:
    """Return a sentence for each rival that would lead with another admissible L∞.

    The laws are refitted with L∞ at a known irreducible loss, and at shares of the greatest possible one. An
    L∞ is admissible where the winner's sum of squares exceeds its least by no more than F(1, n - k) s².
    """
    shared = [law for law in (winner, *rivals) if _has_shared_limit(fits[law])]
    if winner not in shared or len(shared) < 2 or not fits[winner].observations.is_loss:
        return []
    keyed = [law for law in shared if is_keyed(fits[law].law)]  # quick to search, unlike laws with a formula
    stand_in = "joint" if "joint" in fits and story_of(winner) == "β varies" else winner
    compared = [stand_in, *(keyed if is_keyed(fits[stand_in].law) else shared[:2])]
    gaps = _least_gaps({law: fits[law] for law in compared}, stand_in, errors)
    return [
        f"With another L∞ that the data or the known irreducible loss allow, “{label_of(law)}” would lead."
        for law, gap in gaps.items()
        if gap < 0
    ]


def _has_shared_limit(fit: LawFit) -> bool:
    limits = [parameter for parameter in fit.law.parameters if parameter.kind == "limit"]
    return len(limits) == 1 and limits[0].varies is None


def _least_gaps(fits: Mapping[str, LawFit], winner: str, errors: SharedErrors) -> dict[str, float]:
    """Return each rival's least lead in pooled BIC over the admissible limits of every task, as a gap."""
    best = fits[winner]
    totals = dict.fromkeys((law for law in fits if law != winner), 0.0)
    worst = {law: dict.fromkeys(best.tasks, math.inf) for law in totals}
    for share in (*_LIMITS, None):
        refitted = {law: _with_limit(fit, share) for law, fit in fits.items()}
        if any(fit is None for fit in refitted.values()):
            continue
        for task in best.tasks:
            if share is not None and not _admissible(best, refitted[winner], task):
                continue
            bic = {law: criteria_of(fit, task, "")["bic"] for law, fit in refitted.items() if fit is not None}
            for law in totals:
                worst[law][task] = min(worst[law][task], float(bic[law]) - float(bic[winner]))  # type: ignore[arg-type]
    for law in totals:
        known = [gap for gap in worst[law].values() if math.isfinite(gap)]
        totals[law] = sum(known) / errors.design_effect if known else math.inf
    return totals


def _with_limit(fit: LawFit, share: float | None) -> LawFit | None:
    """Return the law refitted with L∞ at a share of its greatest value, or at the known irreducible loss."""
    frame = fit.observations.frame
    if share is None:
        if frame["irreducible"].isna().any():
            return None
    else:
        rows = frame[frame["role"].eq("fit")]
        least = rows.groupby("task")["value"].min()
        most = {task: min(least[task], fit.observations.irreducible_of(str(task))) for task in least.index}
        frame = frame.assign(irreducible=share * frame["task"].map(most).astype(float))
    try:
        return refit_like(fit, frame=frame, irreducible="known")
    except TableError:
        return None


def _admissible(best: LawFit, refitted: LawFit | None, task: str) -> bool:
    """Return whether the data allow the limits of a refit of the best law."""
    assert refitted is not None  # the caller has skipped laws that cannot be refitted
    noise = measure_noise(best, task)
    least, held = (float(np.sum(task_residuals(fit, task)[1] ** 2)) for fit in (best, refitted))
    freedom = max(noise.freedom, 1)
    return held - least <= f_distribution.ppf(0.95, 1, freedom) * least / freedom


def _simulated(winner: LawFit, rival: LawFit, gap: float, errors: SharedErrors, tables: int) -> list[str]:
    """Return why a lead over a rival does not stand on tables simulated from the rival's fit."""
    gaps = simulate_contest(rival, winner, errors, tables=tables)
    gaps = gaps[np.isfinite(gaps)]
    if not len(gaps):
        return []
    name, other = label_of(rival.law.name), label_of(winner.law.name)
    power, as_large = float(np.mean(gaps > CLEAR)), float(np.mean(-gaps >= gap))
    by_chance = max(float(np.quantile(-gaps, 1 - _WRONG)), 0.0)
    if as_large > _WRONG:
        return [
            f"If “{name}” were true, “{other}” would still lead by as much in {as_large:.0%} of such tables."
        ]
    if power < _POWER and gap <= by_chance + _NARROW:
        return [f"Low power: if “{name}” were true, only {power:.0%} of such tables would say so."]
    return []


def _join(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
