"""Quantities that follow from a fit, by name: what further runs can make more certain."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mnmt_laws.answers.fractions import fitted_fraction
from mnmt_laws.answers.recommendation import best_weights
from mnmt_laws.answers.targets import draw_sizes
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit

FORMS = (
    "loss:TASK@size=1e9,p=0.3",
    "fraction:TASK@p=0.1",
    "weight:TASK@size=1e9",
    "limit:TASK",
    "exponent:TASK",
    "size:TASK=0.9,TASK=1.1",
)
"""The ways to write a quantity."""

_NUMBERS = {"loss": ("size", "p"), "fraction": ("p",), "weight": ("size",), "limit": (), "exponent": ()}


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number that follows from a fit."""

    text: str
    """The quantity as it was written."""

    kind: str
    """The first word of its form."""

    task: str = ""
    """The task, but for `size`."""

    numbers: dict[str, float]
    """The arguments; for `size`, the target of each task."""

    def draws(self, fit: LawFit) -> Array:
        """Return (refits,) the quantity in every refit of a capacity law."""
        evaluate: dict[str, Callable[[], Array]] = {
            "loss": lambda: fit.predict(
                draws=True, task=self.task, size=self.numbers["size"], weight=self.numbers["p"]
            ),
            "fraction": lambda: fitted_fraction(fit, task=self.task, weight=self.numbers["p"], draws=True),
            "weight": lambda: best_weights(fit, size=self.numbers["size"])[:, fit.tasks.index(self.task)],
            "limit": lambda: fit.draws.l_inf.sel(task=self.task).to_numpy(),
            "exponent": lambda: fit.draws.alpha.sel(task=self.task).to_numpy(),
            "size": lambda: np.log(draw_sizes(fit, self.numbers)),
        }
        return np.asarray(evaluate[self.kind]())


def parse_quantity(text: str, tasks: list[str]) -> Quantity:
    """Return the quantity that a text names.

    Raises:
        ValueError: If it is not one of `FORMS`, or names a task that is not among `tasks`.
    """
    kind, _, rest = text.partition(":")
    if kind == "size":
        return Quantity(text=text, kind=kind, numbers=_numbers(rest, tuple(tasks), text, partial=True))
    task, _, arguments = rest.partition("@")
    if kind not in _NUMBERS:
        raise ValueError(f"`quantity` must read {' or '.join(FORMS)}, but is {text!r}.")
    if task not in tasks:
        raise ValueError(f"`quantity` must name a task of {', '.join(tasks)}, but is {text!r}.")
    return Quantity(text=text, kind=kind, task=task, numbers=_numbers(arguments, _NUMBERS[kind], text))


def _numbers(arguments: str, names: tuple[str, ...], text: str, *, partial: bool = False) -> dict[str, float]:
    """Return `size=1e9,p=0.3` as numbers: all of `names`, or with `partial` some of them."""
    items = dict(re.findall(r"([^=,\s]+)\s*=\s*([^,\s]+)", arguments))
    complete = set(items) <= set(names) and bool(items) if partial else set(items) == set(names)
    try:
        numbers = {name: float(value) for name, value in items.items()}
    except ValueError:
        complete = False
    if not complete or not all(0 < number < np.inf for number in numbers.values()):
        form = next(form for form in FORMS if form.startswith(text.partition(":")[0]))
        raise ValueError(f"`quantity` must read {form} with numbers above 0, but is {text!r}.")
    return numbers
