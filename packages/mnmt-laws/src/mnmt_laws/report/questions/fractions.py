"""Effective shares of the model over the weight."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import product

import pandas as pd

from mnmt_laws.answers.fractions import EffectiveFractions
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.figures.weights import draw_fractions
from mnmt_laws.report.answer import Answer, FigureGroup, records
from mnmt_laws.report.study import Study
from mnmt_laws.report.text import TextTable, format_interval, format_number
from mnmt_laws.sentences.laws import fractions_sentence


def answer_fractions(study: Study) -> Answer:
    """Return what share of the model a task has the use of."""
    effective = None
    with suppress(TableError, ArgumentError):
        effective = study.effective
    frame = pd.DataFrame() if effective is None else fraction_frame(effective)
    table = TextTable(
        title="Effective fractions",
        note="f(p) = (β₁ / β_p)^(1/α) of the joint law, and how many times its share the task gets.",
        header=("task", "p", "f(p)", "95% interval", "f(p) / p"),
        rows=tuple(
            (
                row["task"],
                f"{row['weight']:g}",
                format_number(row["value"], 3),
                format_interval(row["lower"], row["upper"], 3),
                f"{row['value'] / row['weight']:.2f}×",
            )
            for row in frame.to_dict("records")
        ),
    )
    return Answer(
        findings=(fractions_sentence(study.law),),
        figures=tuple(_figures(study, effective)),
        tables=(table,),
        document={"effective_fractions": records(frame)},
        warnings=() if effective is None else effective.warnings,
    )


def fraction_frame(effective: EffectiveFractions) -> pd.DataFrame:
    """Return f(p) with its uncertainty: `task`, `weight`, `value`, `std`, `lower`, `upper`."""
    fractions, rows = effective.fractions, []
    for task, weight in product(fractions.task.values, fractions.weight.values):
        cell = fractions.sel(task=task, weight=weight)
        lower, upper = (float(end) for end in cell.interval)
        rows.append((str(task), float(weight), float(cell.value), float(cell["std"]), lower, upper))
    frame = pd.DataFrame(rows, columns=["task", "weight", "value", "std", "lower", "upper"])
    return frame.dropna(subset=["value"], ignore_index=True)


def _figures(study: Study, effective: EffectiveFractions | None) -> Iterator[FigureGroup]:
    if study.law.law.fraction is not None and len(study.law.sources) == 2:
        yield FigureGroup(
            "Effective share of the model",
            "f(p) = N_eff / N: the size of the single-task model that does as well, as a share of N. Above "
            "the diagonal a task has more of the model than its weight; the tasks share what they learn.",
            lambda: [draw_fractions(task=task, effective=effective, laws=study.law) for task in study.tasks],
            folded=True,
        )
