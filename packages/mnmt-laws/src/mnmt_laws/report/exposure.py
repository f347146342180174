"""Exposure in the report: what exponents follow, transfer at equal exposure, and f(p) by size."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from mnmt_laws.answers.equal_exposure import EqualExposure, transfer_at_equal_exposure
from mnmt_laws.answers.exposure import Exponents, exponents_by_exposure
from mnmt_laws.answers.fractions import fractions_by_size
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.parameters import null_if_nan
from mnmt_laws.fitting.uncertainty import Uncertainty
from mnmt_laws.report.text import TextTable, format_number
from mnmt_laws.tables.observations import Observations


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """The answers about exposure."""

    exponents: Exponents | None
    """α, β and L∞ of each curve over size; None where no curve has three sizes, or the metric rises."""

    free: Exponents | None
    """The same with L∞ free, where lengths vary."""

    transfer: EqualExposure | None
    """Tasks beside others against the tasks alone; None without lengths."""

    fractions: pd.DataFrame
    """f(p) of each size, as `fractions_by_size` returns it."""

    @property
    def findings(self) -> tuple[str, ...]:
        """What exponents follow, where lengths vary, and transfer, in sentences."""
        follows = "" if self.free is None or self.exponents is None else self.exponents.describe()
        transfer = "" if self.transfer is None else self.transfer.describe()
        return tuple(sentence for sentence in (follows, transfer) if sentence)


def answer_exposure(observations: Observations, uncertainty: Uncertainty) -> Exposure:
    """Answer what a table can answer about exposure.

    Args:
        observations: The losses.
        uncertainty: As in `fit`.
    """
    exponents = free = transfer = None
    with suppress(ArgumentError, TableError):
        exponents = exponents_by_exposure(observations, uncertainty=uncertainty)
        if exponents.lengths_vary:
            free = exponents_by_exposure(observations, limits="free", uncertainty=uncertainty)
    with suppress(ArgumentError):
        transfer = transfer_at_equal_exposure(observations)
    return Exposure(
        exponents=exponents, free=free, transfer=transfer, fractions=fractions_by_size(observations)
    )


def transfer_table(exposure: Exposure) -> TextTable:
    """Return the table of transfer at equal exposure."""
    transfer = exposure.transfer
    rows = [] if transfer is None else transfer.means.to_dict("records")
    return TextTable(
        title="Transfer at equal exposure",
        note="Loss of a task beside others, less that of the task alone which was trained for about p times "
        "the length and so read it as often; the mean over sizes, and its standard error. Below 0 the other "
        "tasks help. No law is fitted.",
        header=("task", "mixture", "length", "alone", "sizes", "difference", "std"),
        rows=tuple(
            (
                row["task"],
                row["mixture"].replace(",", " "),
                *(format_size(row[name]) for name in ("length", "length_alone")),
                str(row["sizes"]),
                f"{row['difference']:+.3f}",
                format_number(row["std"], 2),
            )
            for row in rows
        ),
    )


def exposure_document(exposure: Exposure) -> dict[str, Any]:
    """Return the answers in the types of JSON."""
    exponents, transfer = exposure.exponents, exposure.transfer
    free = None if exposure.free is None else _records(exposure.free.curves)
    return {
        "limits": None if exponents is None else exponents.limits,
        "curves": None if exponents is None else _records(exponents.curves),
        "curves_free": free,
        "tests": [] if exponents is None else [_plain(asdict(test)) for test in exponents.tests],
        "transfer": None if transfer is None else _records(transfer.means),
        "transfer_by_size": None if transfer is None else _records(transfer.by_size),
        "fractions_by_size": _records(exposure.fractions),
    }


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [_plain(row) for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    """Return nested values with null for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else null_if_nan(value)
