"""Mixtures: the advised one, the trade-off between two tasks, and the runs to train next."""

from __future__ import annotations

import math
from dataclasses import replace

from mnmt_laws.answers.design.next_runs import Design, design
from mnmt_laws.answers.design.study_toml import runs_of, studies_of
from mnmt_laws.errors import TableError
from mnmt_laws.figures.decisions import draw_frontier
from mnmt_laws.figures.style import format_size
from mnmt_laws.report.answer import Answer, FigureGroup, plain, records
from mnmt_laws.report.study import Study
from mnmt_laws.report.text import TextTable, format_interval, format_number, format_percent
from mnmt_laws.sentences.advice import model_of
from mnmt_laws.sentences.design import design_sentence
from mnmt_laws.tables.study_file import read_study, study_beside

_FRONTIER_SIZES = 8


def answer_recommendation(study: Study) -> Answer:
    """Advise a mixture.

    Raises:
        TableError: If no law predicts other mixtures.
    """
    advice = study.recommendation
    if advice is None:
        raise TableError(f"{study.observations.source}: no law predicts other mixtures.")
    metric = study.observations.metric
    table = TextTable(
        title="Recommended mixture",
        note=f"For {model_of(advice)}.",
        header=("task", "importance", "weight p", "cheap range", f"predicted {metric}", "95% interval"),
        rows=tuple(
            (
                source,
                format_number(advice.want.importance.get(source, math.nan), 3),
                format_percent(weight),
                " to ".join(map(format_percent, advice.ranges[source])),
                format_number(advice.predicted.get(source, math.nan), 4),
                format_interval(*advice.intervals.get(source, (math.nan, math.nan)), 4),
            )
            for source, weight in advice.weights.items()
        ),
    )
    parts = {
        "want": vars(advice.want),
        "limits": vars(advice.limits),
        "rivals": [vars(rival) for rival in advice.rivals],
        "forms": records(advice.forecast.table),
    }
    document = {key: value for key, value in vars(advice).items() if key != "forecast"} | parts
    return Answer(tables=(table,), document={"recommendation": plain(document)})


def answer_frontier(study: Study) -> Answer:
    """Show what one of two tasks costs the other.

    Raises:
        TableError: If there are not two tasks that were trained together.
    """
    if len(study.tasks) != 2 or not study.has_mixtures:
        raise TableError(f"{study.observations.source}: a frontier needs two tasks, trained together.")
    advice = study.recommendation
    if advice is None:
        raise TableError(f"{study.observations.source}: no law predicts other mixtures.")
    forecast = advice.forecast
    tokens = forecast.target.tokens
    longest = {} if tokens is None else {"tokens": tokens}
    trained = "" if tokens is None else f" trained on {format_size(tokens)} tokens"
    step = math.ceil(len(study.sizes) / _FRONTIER_SIZES)
    figure = FigureGroup(
        "Trade-off frontier",
        "Both tasks as the weights change, one line for each size, as the advice predicts them. "
        f"Points are models{trained}; hollow ones were held out. Lower left is better where the metric is a "
        "loss.",
        lambda: [draw_frontier(forecast, sizes=study.sizes[::-1][::step][::-1], **longest)],
        folded=True,
    )
    return Answer(figures=(figure,))


def answer_design(study: Study) -> Answer:
    """Propose the runs that remove most expected regret for their FLOPs.

    Raises:
        TableError: If no mixture is advised.
    """
    if study.recommendation is None or len(study.recommendation.weights) == 1:
        raise TableError(f"{study.observations.source}: no mixture is advised.")
    base = study_beside(study.records[0].folder.parent if study.records else None)
    result = design(study.recommendation, study=None if base is None else read_study(base))
    document = {"regret": result.regret, "reason": result.reason, "runs": records(result.runs)}
    sentence = design_sentence(result, study.recommendation)
    answer = Answer(findings=(sentence,), document={"design": plain(document)})
    if result.runs.empty:
        return answer
    studies = studies_of(study.observations.frame, runs_of(result.runs), base=base)
    return replace(
        answer,
        tables=(_next_runs(result, sentence),),
        texts=tuple(each.text for each in studies),
    )


def _next_runs(design: Design, sentence: str) -> TextTable:
    """Return the proposed runs with their cost and benefit."""
    rows = (
        (
            f"{order}",
            format_size(row["size"]) if "size" in row else "–",
            row["mixture"].replace(",", " "),
            format_number(row["cost"], 2),
            format_number(row["regret"], 2),
            format_percent(1 - row["share"]),
        )
        for order, row in enumerate(design.runs.to_dict("records"), start=1)
    )
    return TextTable(
        title="Runs to train next",
        note=f"{sentence} Each line counts those before it as trained.",
        header=("", "N", "mixture", design.unit, "expected regret after", "less by"),
        rows=tuple(rows),
    )
