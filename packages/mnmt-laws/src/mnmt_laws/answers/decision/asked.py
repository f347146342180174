"""The model that advice is asked for, and the forecast of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from mnmt_laws.answers.arguments import UNITS, check_number, check_preference
from mnmt_laws.answers.decision.wants import Want
from mnmt_laws.answers.mixtures.budget import FLOPS_PER_TOKEN_PARAMETER, Compute, size_range, within_budget
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.forecasts.forecast import Forecast, forecast, forecast_of
from mnmt_laws.forecasts.rivals import lengths_vary
from mnmt_laws.forecasts.target import NEAR, Target, usual_target
from mnmt_laws.laws import LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource, observe
from mnmt_laws.tables.units import check_units

_BELOW, _ABOVE = 1e3, 1e6
"""How far below or above all runs a size or a length may be asked about."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A size and a length, or a budget in place of one or both."""

    size: float | None = None
    tokens: float | None = None
    budget: float | None = None
    rate: float = FLOPS_PER_TOKEN_PARAMETER

    def __post_init__(self) -> None:
        for name in ("size", "tokens", "budget"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name))
        check_number("flops_per_token_parameter", self.rate)

    @property
    def is_open(self) -> bool:
        """Whether size and length are both to be chosen."""
        return self.budget is not None and self.size is None and self.tokens is None

    @property
    def compute(self) -> Compute:
        """The budget."""
        assert self.budget is not None  # the callers ask only then
        return Compute(budget=self.budget, flops_per_token_parameter=self.rate)

    def completed(self, observations: Observations) -> Asked:
        """Return the question with a size and, where lengths vary, a length."""
        if None not in (self.size, self.tokens, self.budget):
            raise ArgumentError("`size`, `tokens` and `budget` are too many: any two give the third.")
        rows = observations.rows_to_fit(zero_shot=True)
        check_units(rows, observations.locator, observations.scaled)
        self._check_reach(rows)
        known = self.tokens is not None and rows["tokens"].notna().any()
        if self.budget is not None and not known and not lengths_vary(rows):
            raise TableError(
                f"{observations.source}: a budget needs the `tokens` of runs of several training lengths; "
                "leave the budget out, and give a size for advice at the table's length."
            )
        if self.is_open:
            return self
        asked = self
        if self.budget is not None and self.tokens is None:
            tokens = float(self.compute.tokens(np.array(check_number("size", self.size))))
            asked = replace(self, tokens=tokens)
        elif self.budget is not None and self.size is None:
            asked = replace(self, size=self.compute.size(check_number("tokens", self.tokens)))
        usual = usual_target(observations)
        _check_size(observations, asked.size, varies=usual.size is not None)
        return replace(
            asked, size=asked.size or usual.size, tokens=_length(observations, usual, asked.tokens)
        )

    def _check_reach(self, rows: pd.DataFrame) -> None:
        """Refuse a size, length or budget that no table tells about, such as millions for a count.

        Raises:
            ArgumentError: If it is a thousandth of the least of the rows, or a million times the greatest.
        """
        known = {"size": rows["size"], "tokens": rows["tokens"]}
        known["budget"] = self.rate * rows["size"] * rows["tokens"]
        for name, values in known.items():
            number, low, high = getattr(self, name), float(values.min()), float(values.max())
            axes = 2 if name == "budget" else 1  # a budget is of a size and a length
            if number is None or not low > 0 or low / _BELOW**axes <= number <= high * _ABOVE**axes:
                continue
            raise ArgumentError(
                f"`{name}` must be near the {low:.3g} to {high:.3g} {UNITS[name]} of the table, but is "
                f"{number:.3g}; give a count, such as {high:.3g}."
            )

    def size_range(
        self, forecasted: Forecast, want: Want, point: Array, amount: float
    ) -> tuple[float, float]:
        """Return the sizes of the budget that cost at most `amount` more; NaN where the size was not open."""
        if not self.is_open:
            return math.nan, math.nan
        factors = np.array([want.importance[task] for task in forecasted.tasks])
        return size_range(forecasted, self.compute, factors, point, amount)


def _check_size(observations: Observations, size: float | None, *, varies: bool) -> None:
    """Refuse a size far from that of a table of one size, of which its laws know nothing.

    Raises:
        TableError: If it is.
    """
    sizes = observations.rows_to_fit(zero_shot=True)["size"].dropna()
    if size is None or varies or sizes.empty or abs(math.log(size / float(sizes.median()))) <= math.log(NEAR):
        return
    about = f"{float(sizes.median()):.4g} parameters"
    raise TableError(
        f"{observations.source}: all models have about {about}; {size:g} need runs of several sizes. "
        "Leave out the size for advice at the table's."
    )


def _length(observations: Observations, usual: Target, tokens: float | None) -> float | None:
    """Return the length asked for, by default the longest; None where the table has one length only."""
    if usual.tokens is not None or tokens is None:
        return tokens or usual.tokens
    lengths = observations.rows_to_fit(zero_shot=True)["tokens"].dropna()
    median = float(lengths.median()) if len(lengths) else math.nan
    if not abs(math.log(tokens / median)) <= math.log(NEAR):
        length_text = f"were trained for about {median:.4g} tokens" if len(lengths) else "have no `tokens`"
        raise TableError(
            f"{observations.source}: all models of one size {length_text}; {tokens:g} need runs of several "
            "training lengths. Leave out the tokens for advice at the table's length."
        )
    return None


def forecast_for(
    source: TableSource | Observations | LawFit | Forecast,
    asked: Asked,
    *,
    law: LawName | Law | Literal["auto"] = "auto",
    preference: Mapping[str, float] | None = None,
    refits: int = 200,
    length: bool = False,
) -> tuple[Forecast, tuple[str, ...]]:
    """Return the forecast of the model asked for, and a line if a budget's best model is not bounded.

    Args:
        source: A run table or anything that `observe` takes, a fit, or a forecast.
        asked: The model.
        law: One law, or `auto`.
        preference: λ of each task, for the size and length of a budget.
        refits: The number of draws.
        length: Whether, where lengths vary, every form must know size and length.
    """
    if isinstance(source, Forecast):
        if asked.budget is not None:
            raise ArgumentError("`budget` needs a table or a fit: a forecast is of one size and length.")
        target = Target(size=asked.size or source.target.size, tokens=asked.tokens or source.target.tokens)
        return replace(source, target=target), ()
    observations = source.observations if isinstance(source, LawFit) else observe(source)
    asked = asked.completed(observations)
    knows = asked.is_open or (length and asked.tokens is not None)
    if isinstance(source, LawFit):
        result = forecast_of(source, size=asked.size, tokens=asked.tokens)
    else:
        result = forecast(
            observations, law=law, size=asked.size, tokens=asked.tokens, length=knows, refits=refits
        )
    if not asked.is_open:
        return result, ()
    factors = check_preference(result.tasks, preference)
    return within_budget(result, asked.compute, np.array([factors[task] for task in result.tasks]))
