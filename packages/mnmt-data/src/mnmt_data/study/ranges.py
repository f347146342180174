"""Ranges of numbers: a config has them as `RANGES`, {interval: fields}, such as `[1, inf)` or `(0, 1]`.

`check_ranges` refuses other numbers, and the schema of studies shows them to editors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, get_args, get_origin, get_type_hints

Ranges: TypeAlias = Mapping[str, tuple[str, ...]]
"""{interval: the fields whose numbers must lie in it}."""


class Ranged(Protocol):
    """A config with ranges."""

    RANGES: ClassVar[Ranges]


@dataclass(frozen=True)
class Interval:
    """An interval as mathematics writes it: a square bracket includes its end."""

    text: str

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends, which may be outside."""
        least, _, most = self.text[1:-1].partition(", ")
        return float(least), float(most)

    @property
    def is_open(self) -> tuple[bool, bool]:
        """Whether each end is outside."""
        return self.text[0] == "(", self.text[-1] == ")"


def check_ranges(config: Ranged, *, beyond: str = "") -> None:
    """Check the numbers of a config, and the names in its `Literal` fields.

    None is in every range, NaN in none.

    Args:
        config: The config.
        beyond: What numbers above a range are, such as "beyond any published model".

    Raises:
        ValueError: Naming the first field outside its range.
    """
    for name, choices in _choices(type(config)).items():
        if (value := getattr(config, name)) not in choices:
            raise ValueError(f"`{name}` must be one of {', '.join(choices)}, but is {value}.")
    for text, names in config.RANGES.items():
        for name in names:
            value = getattr(config, name)
            if isinstance(value, int | float) and (valid := _range_if_outside(value, Interval(text), beyond)):
                raise ValueError(f"`{name}` must be {valid}, but is {value:,}.")


@cache
def _choices(kind: Any) -> dict[str, tuple[str, ...]]:
    """Return {field: its valid names} of the fields that name a part."""
    hints = get_type_hints(kind)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def _range_if_outside(value: float, interval: Interval, beyond: str) -> str | None:
    """Describe the end that a number is beyond; None if it is inside."""
    (least, most), (above, below) = interval.ends, interval.is_open
    is_high = value > most or (value == most and below)
    if not is_high and (value > least or (value == least and not above)):
        return None
    if most == 1:
        return f"in {interval.text}"
    if (most if is_high else least) in (inf, -inf):
        return "finite"
    if not is_high:
        return f"{'above' if above else 'at least'} {_plain(least)}"
    return ", ".join(filter(None, [f"{'below' if below else 'at most'} {_plain(most)}", beyond]))


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number.is_integer() else f"{number:g}"
