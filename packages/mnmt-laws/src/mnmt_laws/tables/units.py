"""The units of sizes, tokens and FLOPs: counts, not millions or billions of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pandas as pd

from mnmt_laws.tables.learning_curves import curve_numbers
from mnmt_laws.tables.row_location import RowLocator, reject

_WORDS = {1e3: "in thousands", 1e6: "in millions", 1e9: "in billions", 1e12: "in trillions"}
_FLOPS = {10.0**power: f"in units of 1e{power}" for power in range(3, 25, 3)}
_LEAST_SIZE = 768.0
"""Parameters of the smallest model of Kaplan et al. 2020; half of a table's are no smaller."""

_LEAST, _MOST, _LONGEST = 1e-2, 1e6, 1e6
"""Tokens a parameter between which a run of a table lies; fine-tuning sees fewer, but this many tokens."""

_FEW, _APART = 1e-3, 1e5
"""Tokens a parameter below which a run is remarked, or with so many times those of the median run."""

_ALONE = 300.0
"""Times that a size or length of a table lies from the nearest; grids go up by less."""

_USUAL = 20.0
"""Tokens a parameter that a proposed factor comes nearest to (Hoffmann et al. 2022)."""

_REPEATS, _FLOPS_RATE, _SHARE = 1e5, 6.0, 1e-3


def check_units(rows: pd.DataFrame, locator: RowLocator, scaled: Collection[str] = ()) -> None:
    """Check that sizes, tokens and FLOPs are counts.

    Args:
        rows: The last measurement of each run.
        locator: How to name the rows.
        scaled: Columns whose unit is settled by a factor that was given.

    Raises:
        TableError: Naming the first row that cannot be a count, and the factor that would make it one.
    """
    size, ratio, flops = rows["size"], _tokens_per_parameter(rows), rows["flops"]
    rate = flops / (_FLOPS_RATE * size * rows["tokens"])
    unique = rows["unique_tokens"] / rows["tokens"]
    small = size.lt(_LEAST_SIZE) & (size.median() < _LEAST_SIZE)
    column, factors = ("flops", _FLOPS) if np.isclose(rate, 1, rtol=1e-9).any() else ("tokens", _WORDS)
    few = _all_below(ratio, _LEAST) & _all_below(rows["tokens"], _LONGEST)
    rules = [
        ("size", small | _all_below(1 / ratio, 1 / _MOST), _millions_or_billions("size")),
        *(
            (part, _all_below(rows[part] / size, _SHARE), _millions_or_billions(part))
            for part in ("encoder_size", "decoder_size")
        ),
        (column, few, _factor(column, ratio, _USUAL, factors)),
        ("unique_tokens", _all_below(unique, 1 / _REPEATS), _factor("unique_tokens", unique, 1.0, _WORDS)),
        ("flops", _all_below(rate, _SHARE), _factor("flops", rate, 1.0, _FLOPS)),
    ]
    for name, wrong, remedy in rules:
        if name not in scaled:
            wrong = wrong | rows[name].between(0, 1, inclusive="neither")
            rule = f"`{name}` must be a count; {remedy}, if a count, --column {name}={name}*1"
            reject(wrong.to_numpy(), rows, locator, rule, rows[name])


def unit_remarks(rows: pd.DataFrame, locator: RowLocator, scaled: Collection[str] = ()) -> tuple[str, ...]:
    """Return a line for a run of very few or very many tokens a parameter, or else for lone numbers.

    Args:
        rows: As in `check_units`.
        locator: As there.
        scaled: As there.
    """
    ratio = _tokens_per_parameter(rows)
    odd = (ratio.lt(_FEW) & rows["tokens"].ge(1)) | ratio.gt(_APART * ratio.median())
    if not odd.any() or {"size", "tokens"} & set(scaled):
        return tuple(_lone_numbers(rows, locator))
    first = int(odd.to_numpy().argmax())
    tokens, size = rows["tokens"].iloc[first], rows["size"].iloc[first]
    return (
        f"{locator.name(rows, first)}: {tokens:.4g} tokens for {size:.4g} parameters; if one is in another "
        "unit, write the count, or give the column's factor, as --column tokens=tokens*1e6.",
    )


def check_growth(rows: pd.DataFrame, locator: RowLocator) -> None:
    """Raise TableError if tokens fall with the steps of a run."""
    runs = rows[rows["run"] != ""]
    known = runs.assign(curve=curve_numbers(runs)).dropna(subset=["step", "tokens"])
    ordered = known.sort_values(["curve", "step", "tokens"])
    falls = ordered.groupby("curve")["tokens"].diff().lt(0).to_numpy()
    rule = "`tokens` must not fall with the steps of a run; give the tokens since training began"
    reject(falls, ordered, locator, rule, ordered["tokens"])


def _lone_numbers(rows: pd.DataFrame, locator: RowLocator) -> Iterator[str]:
    """Yield a line for a size or length that is far from all others, as one in another unit is."""
    for name in ("size", "tokens"):
        known = np.unique(rows.loc[rows[name] > 0, name])
        if len(known) < 3:
            continue
        steps = np.concatenate([[np.inf], known[1:] / known[:-1], [np.inf]])
        alone = known[np.minimum(steps[:-1], steps[1:]) >= _ALONE]
        if len(alone):
            first = int(rows[name].eq(alone[0]).to_numpy().argmax())
            yield (
                f"{locator.name(rows, first)}: `{name}` is {alone[0]:.4g}, and no other is within {_ALONE:g} "
                "times of it; if it is in another unit, write the count."
            )


def _tokens_per_parameter(rows: pd.DataFrame) -> pd.Series:
    return rows["tokens"].where(rows["tokens"] > 0) / rows["size"]


def _all_below(ratio: pd.Series, bound: float) -> pd.Series:
    """Return the rows with a ratio above 0 if all of these are below the bound, else none."""
    known = ratio.gt(0)
    return known & bool(ratio[known].lt(bound).all())


def _millions_or_billions(column: str) -> str:
    option = f"--column {column}={column}"
    return f"if it is in millions, say {option}*1e6, if in billions, {option}*1e9"


def _factor(column: str, ratio: pd.Series, usual: float, factors: dict[float, str]) -> str:
    """Return the remedy for a column whose `ratio` to another should be about the usual."""
    names = np.array([*factors])
    typical = ratio[ratio > 0].median()
    factor = float(names[np.abs(np.log(names * typical / usual)).argmin()])
    steps = "; if it counts steps, --column step=tokens" if column == "tokens" else ""
    return f"if it is {factors[factor]}, say --column {column}={column}*1e{np.log10(factor):.0f}{steps}"
