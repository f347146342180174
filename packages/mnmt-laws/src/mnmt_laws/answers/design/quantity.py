"""Quantities that follow from a fit, by name, which further runs can make more certain."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.answers.arguments import check_predictors, did_you_mean
from mnmt_laws.answers.fractions import fitted_fraction
from mnmt_laws.answers.mixtures.best_mixture import LEAST_WEIGHT, best_mixtures
from mnmt_laws.answers.mixtures.targets import draw_sizes
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit

FORMS = (
    "loss:TASK@size=1e9,p=0.3",
    "fraction:TASK@p=0.1",
    "weight:TASK@size=1e9",
    "limit:TASK",
    "exponent:TASK",
    "size:TASK=0.9,TASK=1.1",
)
"""The ways to write a quantity. A law that knows the training length takes `tokens=1e10` after the size, and
`size:TASK=0.9@tokens=1e10`. For three sources or more, the table's mean divides the rest beside `p`."""

_NUMBERS = {
    "loss": ("size", "tokens", "p"),
    "fraction": ("p",),
    "weight": ("size", "tokens"),
    "limit": (),
    "exponent": (),
}
_OPTIONAL = {"size", "tokens"}  # the law decides


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number that follows from a fit."""

    text: str
    """The quantity as the caller wrote it."""

    kind: str
    """The first word of its form."""

    task: str = ""
    """The task; empty for `size`."""

    numbers: dict[str, float]
    """The arguments."""

    targets: dict[str, float]
    """For `size`, the target of each task."""

    def draws(self, fit: LawFit) -> Array:
        """Return (refits,) the quantity in every refit.

        Raises:
            ArgumentError: If the law has no such quantity, or needs another size or length.
        """
        evaluate: dict[str, Callable[[LawFit], Array]] = {
            "loss": self._loss,
            "fraction": self._fraction,
            "weight": self._weight,
            "limit": lambda fit: _parameter(fit, self.task, "limit"),
            "exponent": lambda fit: _parameter(fit, self.task, "exponent"),
            "size": lambda fit: np.log(draw_sizes(fit, self.targets, _length(fit, self.numbers))),
        }
        return np.asarray(evaluate[self.kind](fit))

    def _loss(self, fit: LawFit) -> Array:
        predictors = check_predictors(fit, size=self.numbers.get("size"), tokens=self.numbers.get("tokens"))
        mixture = mixture_of(fit, self.task, self.numbers["p"])
        points = np.array([[[mixture[source] for source in fit.sources]]])
        predicted = fit.evaluator.predict_points(fit.draws, points=points, **predictors)
        return np.asarray(predicted[:, fit.tasks.index(self.task), 0])

    def _fraction(self, fit: LawFit) -> Array:
        mixture = mixture_of(fit, self.task, self.numbers["p"])
        return fitted_fraction(fit, task=self.task, weight=self.numbers["p"], mixture=mixture, draws=True)

    def _weight(self, fit: LawFit) -> Array:
        predictors = check_predictors(fit, size=self.numbers.get("size"), tokens=self.numbers.get("tokens"))
        if self.task not in fit.sources:
            sources = ", ".join(fit.sources)
            raise ArgumentError(f"`quantity` must name a source of {sources}, but is {self.text!r}.")
        equal = np.full(len(fit.tasks), 1.0 / len(fit.tasks))
        best, _ = best_mixtures(fit, predictors, equal, LEAST_WEIGHT, draws=True)
        return np.asarray(best[:, fit.sources.index(self.task)])


def _length(fit: LawFit, numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the training length of a smallest size, where the law knows it."""
    checked = check_predictors(fit, size=1.0, tokens=numbers.get("tokens"))
    return {name: value for name, value in checked.items() if name != "size"}


def mixture_of(fit: LawFit, task: str, weight: float) -> dict[str, float]:
    """Return a mixture with one weight given; the rest is divided as in the table's mean."""
    if fit.sources == [task]:
        return {task: weight}
    rest = [source for source in fit.sources if source != task]
    if len(rest) == 1 and task in fit.sources:
        return {task: weight, rest[0]: 1.0 - weight}
    means = fit.observations.mixtures_of(fit.rows).mean()
    total = float(means[rest].sum())
    return {task: weight} | {source: (1.0 - weight) * float(means[source]) / total for source in rest}


def _parameter(fit: LawFit, task: str, kind: str) -> Array:
    """Return (refits,) the first parameter of a kind."""
    names = [p.name for p in fit.law.parameters if p.kind == kind and p.varies is None]
    if not names:
        raise ArgumentError(f"`quantity` must suit the law, but the {fit.law.name} law has no {kind}.")
    return np.asarray(fit.draws[names[0]].sel(task=task).to_numpy())


def parse_quantity(text: str, tasks: list[str]) -> Quantity:
    """Return the quantity that a text names.

    Raises:
        ArgumentError: If it is not one of `FORMS`, or its task is not one of `tasks`.
    """
    kind, _, rest = text.partition(":")
    head, _, arguments = rest.rpartition("@") if kind == "size" and "@" in rest else rest.partition("@")
    if kind == "size":
        targets = _numbers(head, tuple(tasks), text, optional=set(tasks))
        numbers = _numbers(arguments, ("tokens",), text, optional={"tokens"})
        if not targets:
            raise _malformed(text)
        return Quantity(text=text, kind=kind, numbers=numbers, targets=targets)
    if kind not in _NUMBERS:
        raise ArgumentError(f"`quantity` must read {' or '.join(FORMS)}, but is {text!r}.")
    if head not in tasks:
        raise ArgumentError(
            f"`quantity` must name a task of {', '.join(tasks)}, but is {text!r}{did_you_mean(head, tasks)}."
        )
    numbers = _numbers(arguments, _NUMBERS[kind], text, optional=_OPTIONAL)
    return Quantity(text=text, kind=kind, task=head, numbers=numbers, targets={})


def _numbers(arguments: str, names: tuple[str, ...], text: str, *, optional: set[str]) -> dict[str, float]:
    """Return `size=1e9,p=0.3` as numbers: all of `names`, some of which are optional."""
    items = dict(re.findall(r"([^=,\s]+)\s*=\s*([^,\s]+)", arguments))
    complete = set(names) - optional <= set(items) <= set(names)
    try:
        numbers = {name: float(value) for name, value in items.items()}
    except ValueError:
        complete = False
    if not complete or not all(0 < number < np.inf for number in numbers.values()):
        raise _malformed(text)
    if numbers.get("p", 1.0) > 1:
        raise ArgumentError(f"`quantity` must give a weight p of at most 1, but is {text!r}.")
    return numbers


def _malformed(text: str) -> ArgumentError:
    form = next(form for form in FORMS if form.startswith(text.partition(":")[0]))
    return ArgumentError(f"`quantity` must read {form} with numbers above 0, but is {text!r}.")
