"""Predictions of models that no fit has seen: held-out runs and back-tests."""

from __future__ import annotations

from typing import Any

from mnmt_laws.answers.predictions import HeldOut
from mnmt_laws.figures.predictions import draw_held_out
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.back_test import back_tests
from mnmt_laws.fitting.parameters import null_if_nan
from mnmt_laws.report.answer import Answer, FigureGroup, plain, records
from mnmt_laws.report.study import Study
from mnmt_laws.report.text import UNKNOWN, TextTable, format_interval, format_number, format_percent


def answer_held_out(study: Study) -> Answer:
    """Compare held-out runs with their predictions."""
    held_out = study.held_out
    if held_out.rows.empty:
        return Answer(document={"held_out": _document(held_out)})
    figure = FigureGroup(
        "Held-out models",
        f"Measured against predicted by the {held_out.law} law, fitted without them. On the dashed "
        "line a prediction is exact. The marker tells what the law had not seen.",
        lambda: [draw_held_out(held_out, study.observations)],
        folded=True,
    )
    return Answer(
        figures=(figure,),
        tables=(_table(held_out),),
        document={"held_out": _document(held_out)},
    )


def _table(held_out: HeldOut) -> TextTable:
    rows = []
    for row in held_out.rows.to_dict("records"):
        new = " and ".join(name for name in ("weight", "size") if row[f"new_{name}"]) or UNKNOWN
        measured = format_number(row["observed"], 4)
        interval = format_interval(row["predicted_lower"], row["predicted_upper"], 4)
        run = (row["task"], format_size(row["size"]), f"{row['weight']:.3g}", new)
        predicted = format_number(row["predicted"], 4)
        rows.append((*run, measured, predicted, interval, format_percent(row["error"], sign=True)))
    return TextTable(
        title="Held-out models, one by one",
        note=f"Predicted by the {held_out.law} law, fitted without them; the interval is that "
        "of a new model, the error the measured value over the predicted.",
        header=("task", "N", "p", "unseen", "measured", "predicted", "95% interval", "error"),
        rows=tuple(rows),
    )


def _document(held_out: HeldOut) -> dict[str, Any]:
    errors, (inside, known) = held_out.errors(), held_out.num_inside
    return {
        "law": held_out.law,
        "rows": records(held_out.rows),
        "count": len(errors),
        "median_relative_error": null_if_nan(float(errors.median())),
        "max_relative_error": null_if_nan(float(errors.max())),
        "signs": held_out.signs,
        "inside": inside,
        "intervals": known,
        "median_width": null_if_nan(held_out.width),
        "median_width_of_reducible": null_if_nan(held_out.reducible_width),
        "hold_a_constant": held_out.num_constant,
        "untested": list(held_out.untested),
    }


def answer_back_tests(study: Study) -> Answer:
    """Return the law's errors on the largest sizes and longest runs, refitted without them."""
    tests = back_tests(study.law)
    names = ("left_out", "error", "signs", "reach", "chance")
    rows = [{**{name: getattr(test, name) for name in names}, "sentence": test.describe()} for test in tests]
    return Answer(document={"back_tests": plain(rows)})
