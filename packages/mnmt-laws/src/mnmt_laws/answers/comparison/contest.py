"""Fit rival laws to one table and weigh them against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from mnmt_laws.answers.comparison.evidence import SharedErrors, criteria_of, shared_errors
from mnmt_laws.answers.comparison.sentences import preference_sentence, shares_sentence
from mnmt_laws.answers.comparison.verdict import decide, pool
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.refits import NO_REFITS
from mnmt_laws.forecasts.forecast import Forecast
from mnmt_laws.forecasts.forms import Form, forms_of, forms_table
from mnmt_laws.forecasts.rivals import find_rivals, is_keyed, keep_comparable, label_of
from mnmt_laws.forecasts.target import usual_target
from mnmt_laws.laws import LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource, observe


@dataclass(frozen=True, kw_only=True)
class LawComparison:
    """Rival laws side by side."""

    table: pd.DataFrame
    """A row for each task and law: `task`, `law`, `label`, `num_params`, `scatter` (root mean square relative
    residual), `aic`, `bic` and `lack_of_fit` (its probability given the noise between seeds, else NaN)."""

    verdict: str
    """The preferred law and the reasons, or why the comparison is undecided, in words."""

    preference: str
    """The first sentence of the verdict: the preferred law, or that there is none."""

    best: str
    """The law preferred over all tasks together; empty if undecided."""

    reasons: tuple[str, ...]
    """Why the comparison is undecided, in sentences; empty if it is decided."""

    errors: SharedErrors
    """The shared errors of a run's tasks; criteria over all tasks are divided by their design effect."""

    fits: dict[str, LawFit]
    """The fit of each law."""

    forms: pd.DataFrame
    """The laws and rulers of the average that advice rests on: `law`, `share`, and root mean square errors of
    log-losses on what was left out: `size_error` (the largest size), `length_error` (the longest
    training) and `mixture_error` (mixtures in turn), NaN where it cannot predict it."""

    @property
    def decided(self) -> bool:
        """Whether one law is preferred, and passes every check."""
        return bool(self.best)


def compare(
    source: TableSource | Observations,
    *,
    laws: Sequence[LawName | Law] | None = None,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    objective: str = "log-ols",
    left_out: bool = True,
    tables: int = 100,
    forecast: Forecast | None = None,
) -> LawComparison:
    """Fit the laws that a table admits, and weigh them against each other.

    For two sources and one training length, the mixture moves β, L∞, α or all three, freely or by a formula.
    For more sources these are laws of whole mixtures, for several training lengths laws of length. Laws of
    one meaning, such as β that varies freely or by f̂(p), are not rivals.

    Args:
        source: Anything that `observe` takes.
        laws: The laws to compare; by default all that the table admits.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.
        objective: As in `fit`.
        left_out: Whether to find `forms`, by errors on left-out sizes, lengths and mixtures.
        tables: Tables simulated from each rival's fit to test the verdict; 0 for none.
        forecast: The average over laws and rulers of these observations, where it was made already.

    Raises:
        TableError: If the table cannot be read, or no two laws can be compared on it.
        ValueError: If a law is unknown.
    """
    observations = observe(source, metric=metric, testset=testset, architecture=architecture)
    rivals = find_rivals(observations, laws)
    try:
        comparable = keep_comparable(observations, rivals)
    except TableError:
        rivals = [law for law in rivals if not is_keyed(law)] if laws is None else []
        if len(rivals) < 2:
            raise
        comparable = keep_comparable(observations, rivals)
    fits = _fit_all(comparable, rivals, objective)
    table = _table(fits)
    errors = shared_errors(fits[str(table.groupby("law", sort=False)["scatter"].mean().idxmin())])
    errors = _errors_of_best(fits, table, errors)
    verdict = decide(fits, pool(table, errors), errors, tables=tables)
    preference = preference_sentence(verdict)
    named = None if laws is None else find_rivals(observations, laws)
    forms = [] if not left_out else forecast.forms if forecast else _forms(observations, named)
    sentences = [shares_sentence(forms_table(forms)), preference, *verdict.reasons[:3]]
    return LawComparison(
        table=table, verdict=" ".join(filter(None, sentences)), preference=preference,
        best=verdict.best, reasons=verdict.reasons, errors=errors, fits=fits, forms=forms_table(forms),
    )  # fmt: skip


def _forms(observations: Observations, laws: Sequence[Law] | None) -> Sequence[Form]:
    return forms_of(observations, usual_target(observations), laws)


def _fit_all(observations: Observations, rivals: Sequence[Law], objective: str) -> dict[str, LawFit]:
    """Return the fit of each law, without refits."""
    return {
        law.name: fit(observations, law=law, objective=objective, prior="none", uncertainty=NO_REFITS)
        for law in rivals
    }


def _table(fits: dict[str, LawFit]) -> pd.DataFrame:
    tasks = next(iter(fits.values())).tasks
    return pd.DataFrame(
        [criteria_of(fit, task, label_of(law)) for task in tasks for law, fit in fits.items()]
    )


def _errors_of_best(fits: dict[str, LawFit], table: pd.DataFrame, errors: SharedErrors) -> SharedErrors:
    """Return the shared errors of the law of least BIC, whose residuals are nearest to noise."""
    ranking = pool(table, errors)
    return errors if ranking.empty else shared_errors(fits[str(ranking.index[0])])
