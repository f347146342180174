"""Exposure in the report: what exponents follow, transfer at equal exposure, and f(p) by size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pandas as pd

from mnmt_laws.answers.equal_exposure import EqualExposure, transfer_at_equal_exposure
from mnmt_laws.answers.exposure import Exponents, exponents_by_exposure
from mnmt_laws.answers.fractions import fractions_by_size
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.figures.coefficients import draw_coefficients
from mnmt_laws.figures.style import format_size
from mnmt_laws.figures.weights import draw_fractions_by_size
from mnmt_laws.report.answer import Answer, FigureGroup, plain, records
from mnmt_laws.report.study import Study
from mnmt_laws.report.text import TextTable, format_number

_ONE_LENGTH = (
    "Each curve over size fitted alone, ± one standard deviation. If the weight acts through β only, α and "
    "L∞ stay flat. Dashed: the joint law, and the true limit where it is known."
)
_LENGTHS = (
    "Each curve over size fitted alone, ± one standard deviation: α and β with {}, L∞ free. Left over the "
    "weight, right over what the models read of the task, a colour for each training length. Where the "
    "lengths fall on one line on the right, a coefficient follows the exposure and not the weight."
)


def answer_exposure(study: Study) -> Answer:
    """Answer what a table can answer about exposure: exponents, transfer at equal exposure, f(p) by size."""
    observations, uncertainty = study.observations, study.uncertainty
    exponents = free = transfer = None
    with suppress(ArgumentError, TableError):
        exponents = exponents_by_exposure(observations, uncertainty=uncertainty)
        if exponents.lengths_vary:
            free = exponents_by_exposure(observations, limits="free", uncertainty=uncertainty)
    with suppress(ArgumentError):
        transfer = transfer_at_equal_exposure(observations)
    fractions = fractions_by_size(observations)
    follows = "" if free is None or exponents is None else exponents.describe()
    return Answer(
        findings=tuple(filter(None, (follows, "" if transfer is None else transfer.describe()))),
        figures=(*_coefficients(study, exponents, free), *_fractions_by_size(fractions)),
        tables=(_transfer_table(transfer),),
        document={"exposure": _document(exponents, free, transfer, fractions)},
    )


def _coefficients(study: Study, exponents: Exponents | None, free: Exponents | None) -> Iterator[FigureGroup]:
    """Yield α, β and L∞ of curves over size, over the weight and, where lengths vary, the exposure."""
    if exponents is None:
        return
    joint = study.laws_by_weight.get("joint") if free is None else None
    title = "Coefficients over the weight" if free is None else "Coefficients over weight and exposure"
    origin = "L∞ known" if exponents.limits == "known" else "L∞ = 0"
    yield FigureGroup(
        title,
        f"{_ONE_LENGTH} {exponents.describe()}" if free is None else _LENGTHS.format(origin),
        lambda: [
            draw_coefficients(
                exponents, task=task, limits=free, joint=joint, irreducible=study.known_limit(task)
            )
            for task in sorted(exponents.curves["task"].unique())
        ],
        folded=True,
    )


def _fractions_by_size(fractions: pd.DataFrame) -> Iterator[FigureGroup]:
    """Yield f of each size without a law."""
    if fractions.empty or fractions["value"].count() < 2:
        return
    yield FigureGroup(
        "Effective share by size",
        "f = N_eff / N read from the losses without a law: the size of the single-task model of equal "
        "loss, trained as long, over N. Arrows down: the model is worse than the smallest trained alone, "
        "so only a bound is known. Most laws take f for the same at every size.",
        lambda: [draw_fractions_by_size(fractions, task=task) for task in sorted(fractions["task"].unique())],
        folded=True,
    )


def _transfer_table(transfer: EqualExposure | None) -> TextTable:
    """Return the table of transfer at equal exposure."""
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


def _document(
    exponents: Exponents | None,
    free: Exponents | None,
    transfer: EqualExposure | None,
    fractions: pd.DataFrame,
) -> dict[str, Any]:
    """Return the answers in the types of JSON."""
    return {
        "limits": None if exponents is None else exponents.limits,
        "curves": None if exponents is None else records(exponents.curves),
        "curves_free": None if free is None else records(free.curves),
        "tests": [] if exponents is None else [plain(asdict(test)) for test in exponents.tests],
        "transfer": None if transfer is None else records(transfer.means),
        "transfer_by_size": None if transfer is None else records(transfer.by_size),
        "fractions_by_size": records(fractions),
    }
