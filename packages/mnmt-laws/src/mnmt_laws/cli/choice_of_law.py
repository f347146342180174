"""The law that answers a question, and its back-tests."""

from __future__ import annotations

from mnmt_laws.answers.comparison.preferred_law import is_mixed, usual_law
from mnmt_laws.answers.mixtures.doubts import tests_behind
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.laws import LAWS, LawName
from mnmt_laws.tables.observations import Observations


def law_of(observations: Observations, law: LawName | None, *, length: bool) -> LawName:
    """Return the law that was named, or the one that suits the question and the table."""
    if law is None and len(observations.tasks) > 1 and not is_mixed(observations):
        raise TableError("all models here have one mixture; others cannot be predicted without runs of them.")
    name = law or usual_law(observations, length=length)
    if not LAWS[name].knows_mixture:
        raise TableError(
            f"--law {name}: predicts only the mixtures trained; choose capacity, share-tied, "
            "simplex-share or another law of mixtures."
        )
    return name


def check_model(law: LawName, *, size: float | None, tokens: float | None) -> None:
    """Refuse a size or a length that is missing or superfluous, before anything is computed."""
    for name, value in (("size", size), ("tokens", tokens)):
        if value is None and name in LAWS[law].predictors:
            raise TableError(f"give --{name}: the {law} law predicts from it.")
        if value is not None and name not in LAWS[law].predictors:
            raise TableError(f"leave out --{name}: the {law} law does not know it.")


def print_back_tests(fitted: LawFit, *, size: float | None, tokens: float | None) -> None:
    """Print the error of the back-tests behind an answer that extrapolates; they may take seconds."""
    for test in tests_behind(fitted, size=size, tokens=tokens):
        print(f"back-test: {test.describe()}")
