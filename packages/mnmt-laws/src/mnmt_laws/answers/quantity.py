"""Quantities whose uncertainty a study wants down, by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mnmt_laws.answers.fractions import fitted_fraction_draws
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
"""How quantities are written."""

_NUMBERS = {"loss": ("size", "p"), "fraction": ("p",), "weight": ("size",), "limit": (), "exponent": ()}


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number that follows from a fit."""

    text: str
    kind: str
    task: str = ""
    numbers: dict[str, float]
    """Its arguments; of `size`, the target of each task."""

    def draws(self, fit: LawFit) -> Array:
        """(refits,) the quantity in every refit of a capacity law."""
        evaluate: dict[str, Callable[[LawFit], Array]] = {
            "loss": lambda own: own.predict(
                draws=True, task=self.task, size=self.numbers["size"], weight=self.numbers["p"]
            ),
            "fraction": lambda own: fitted_fraction_draws(own, task=self.task, weight=self.numbers["p"]),
            "weight": lambda own: best_weights(own, size=self.numbers["size"])[:, own.tasks.index(self.task)],
            "limit": lambda own: own.draws.l_inf.sel(task=self.task).to_numpy(),
            "exponent": lambda own: own.draws.alpha.sel(task=self.task).to_numpy(),
            "size": lambda own: np.log(draw_sizes(own, self.numbers)),
        }
        return np.asarray(evaluate[self.kind](fit))


def parse_quantity(text: str, tasks: list[str]) -> Quantity:
    """A quantity from its name.

    Raises:
        ValueError: If it is not one of `FORMS`, or names a task that is not among `tasks`.
    """
    kind, _, rest = text.partition(":")
    if kind == "size":
        return Quantity(text=text, kind=kind, numbers=_numbers(rest, tuple(tasks), text, some=True))
    task, _, arguments = rest.partition("@")
    if kind not in _NUMBERS:
        raise ValueError(f"`quantity` must read {' or '.join(FORMS)}, but is {text!r}.")
    if task not in tasks:
        raise ValueError(f"`quantity` must name a task of {', '.join(tasks)}, but is {text!r}.")
    return Quantity(text=text, kind=kind, task=task, numbers=_numbers(arguments, _NUMBERS[kind], text))


def _numbers(arguments: str, names: tuple[str, ...], text: str, *, some: bool = False) -> dict[str, float]:
    """`size=1e9,p=0.3` as numbers; all of `names`, or some of them."""
    found = dict(re.findall(r"([^=,\s]+)\s*=\s*([^,\s]+)", arguments))
    complete = set(found) <= set(names) and bool(found) if some else set(found) == set(names)
    try:
        numbers = {name: float(value) for name, value in found.items()}
    except ValueError:
        complete = False
    if not complete or not all(0 < number < np.inf for number in numbers.values()):
        form = next(form for form in FORMS if form.startswith(text.partition(":")[0]))
        raise ValueError(f"`quantity` must read {form} with numbers above 0, but is {text!r}.")
    return numbers
