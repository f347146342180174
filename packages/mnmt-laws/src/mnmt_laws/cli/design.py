"""`mnmt-laws design`: the runs to train next."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from mnmt_laws.answers.design.candidates import CandidateRun
from mnmt_laws.answers.design.next_runs import design as design_runs
from mnmt_laws.answers.design.study_toml import runs_of, studies_of
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.answers.recommendation import recommend as recommend_mixture
from mnmt_laws.cli.console import print_json, warn, wrote
from mnmt_laws.cli.laws import LawOrAverage
from mnmt_laws.cli.options import (
    DEFAULT_REFITS,
    DEFAULT_TABLE,
    Json,
    Out,
    Positive,
    Refits,
    TableConfig,
    observe_table,
    whole_number,
)
from mnmt_laws.cli.question import DEFAULT_WANT, WantConfig, warnings_of
from mnmt_laws.errors import ArgumentError
from mnmt_laws.sentences.design import design_lines, design_sentence
from mnmt_laws.tables.study_file import read_study, study_beside


def design(
    source: Path | None = None,
    *,
    size: Positive | None = None,
    tokens: Positive | None = None,
    want: WantConfig = DEFAULT_WANT,
    runs: Annotated[int, Parameter(validator=Number(gte=1), converter=whole_number)] = 3,
    budget: Positive = math.inf,
    law: LawOrAverage = "auto",
    table: TableConfig = DEFAULT_TABLE,
    refits: Refits = DEFAULT_REFITS,
    out: Annotated[Path | None, Out] = None,
    study: Path | None = None,
    as_json: Json = False,
) -> None:
    """Propose the runs that remove most of the advice's expected regret for their FLOPs, or none.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: The number of parameters that advice is for; by default twice the largest fitted, or a
            larger one held out.
        tokens: Its training length, tokens of all tasks; by default the longest of the table.
        want: What is wanted.
        runs: The number of runs to propose.
        budget: The FLOPs that all of them may cost at most.
        law: One law, or the average over the laws and rulers that predicted best what was left out.
        table: The part of the table to analyse.
        refits: The number of draws.
        out: Write the study that trains these runs to this `.toml` file; runs that do not fit one grid of
            sizes × mixtures go to files beside it.
        study: The study file whose sections and sizes are copied; by default `study.toml` in the folder of
            run records.
        as_json: Print JSON only.
    """
    if out is not None and out.suffix != ".toml":
        raise ArgumentError(f"--out {out}: must end in .toml.")
    observations = observe_table(source, table)
    want.state_goal(observations.goal)
    arguments = want.arguments(observations.tasks, observations.tasks)
    base = study or study_beside(source)
    content = None if base is None else read_study(base)
    advice = recommend_mixture(observations, size=size, tokens=tokens, law=law, refits=refits, **arguments)
    result = design_runs(advice, runs=runs, budget=budget, study=content)
    warnings = (*warnings_of(advice.forecast.best), *advice.warnings)
    if as_json:
        names = ("regret", "reason", "runs", "candidates")
        print_json({**{name: getattr(result, name) for name in names}, "warnings": warnings})
    else:
        print("\n".join([design_sentence(result, advice), *design_lines(result, advice)]))
    if out is not None and result.reason:
        warn([f"--out {out}: no file was written, since nothing is worth training."])
    elif out is not None:
        _write_studies(advice, runs_of(result.runs), design_lines(result, advice), out, base)
    warn(() if as_json else warnings)


def _write_studies(
    advice: Recommendation, runs: list[CandidateRun], notes: list[str], out: Path, base: Path | None
) -> None:
    rows = advice.forecast.observations.frame
    for number, study in enumerate(studies_of(rows, runs, notes=notes, base=base), start=1):
        path = out if number == 1 else out.with_stem(f"{out.stem}-{number}")
        path.write_text(study.text, encoding="utf-8")
        wrote(path)
