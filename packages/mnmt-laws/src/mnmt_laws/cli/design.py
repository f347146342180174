"""`mnmt-laws design`: the runs to train next."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from mnmt_laws.answers.design.next_runs import design as design_runs
from mnmt_laws.answers.design.study_toml import runs_of, studies_of
from mnmt_laws.cli.answer_text import design_lines
from mnmt_laws.cli.choice_of_law import law_of
from mnmt_laws.cli.console import print_frame, print_json, warn, wrote
from mnmt_laws.cli.options import (
    DEFAULT_FIT,
    DEFAULT_TABLE,
    BaseStudy,
    Figure,
    FitConfig,
    Json,
    Out,
    Positive,
    TableConfig,
    fit_observations,
    observe_table,
    whole_number,
)
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.figures.decisions import draw_design
from mnmt_laws.figures.style import format_size, save
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.laws import LAWS, LawName


def design(
    source: Path | None = None,
    *,
    quantity: str,
    runs: Annotated[int, Parameter(validator=Number(gte=1), converter=whole_number)] = 3,
    budget: Positive = math.inf,
    flops_per_parameter: Positive | None = None,
    flops_per_token_parameter: Positive | None = None,
    per: Literal["cost", "run"] = "cost",
    law: LawName | None = None,
    table: TableConfig = DEFAULT_TABLE,
    fitting: FitConfig = DEFAULT_FIT,
    out: Annotated[Path | None, Out] = None,
    study: BaseStudy = None,
    figure: Figure = None,
    as_json: Json = False,
) -> None:
    """Propose the runs to train next: those that make a quantity most certain.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        quantity: What should become more certain: `loss:TASK@size=1e9,p=0.3`, `fraction:TASK@p=0.1`,
            `weight:TASK@size=1e9` (the best weight), `limit:TASK`, `exponent:TASK` or
            `size:TASK=0.9,TASK=1.1` (the smallest size that meets targets). For a law that knows the training
            length, `tokens=1e10` follows the size, as in `size:TASK=0.9@tokens=1e10`.
        runs: How many runs to propose.
        budget: The most FLOPs that all of them may cost.
        flops_per_parameter: The cost of a run for each of its parameters. By default it follows from the
            columns `flops` or `tokens` of the table.
        flops_per_token_parameter: The same for each parameter and token, for laws that know the length.
        per: Compare runs by the certainty they add for their `cost`, or for each `run` whatever it costs.
        law: How losses depend on size, length and mixture. By default `capacity`, or where the quantity names
            tokens `share-tied`; `simplex-capacity` and `simplex-share` where a weight occurs in several
            mixtures.
        table: What is analysed.
        fitting: How it is fitted.
        out: Write the study that trains these runs to this `.toml` file; what one grid of sizes × mixtures
            cannot hold goes to files beside it.
        study: The study file whose sections and sizes the written one takes over.
        figure: Draw trained and proposed runs to this `.svg`, `.png`, `.pdf` or `.html` file.
        as_json: Print JSON only.
    """
    if study is not None and out is None:
        raise TableError("--study goes with --out.")
    observations = observe_table(source, table)
    name = law_of(observations, law, length="tokens=" in quantity)
    if flops_per_parameter is not None and LAWS[name].knows_length:
        raise TableError(f"give --flops-per-token-parameter for --flops-per-parameter: {name} knows length.")
    if flops_per_token_parameter is not None and not LAWS[name].knows_length:
        raise TableError(
            f"give --flops-per-parameter for --flops-per-token-parameter: {name} knows no length."
        )
    fitted = fit_observations(observations, name, fitting)
    scale = flops_per_token_parameter if fitted.law.knows_length else flops_per_parameter
    cost = None if scale is None else lambda *model: scale * math.prod(model)
    result = design_runs(fitted, quantity=quantity, runs=runs, cost=cost, budget=budget, per=per)
    if figure is not None:
        save(draw_design(result, fitted.observations, task=fitted.tasks[0]), figure)
        wrote(figure)
    if out is not None:
        _write_studies(fitted, runs_of(result.runs), design_lines(result, fitted), out, study)
    if as_json:
        document = {key: getattr(result, key) for key in ("quantity", "std", "method", "runs", "candidates")}
        print_json({**document, "law": fitted.law.name, "warnings": fitted.warnings})
        return
    print(f"{result.quantity}: standard deviation now {result.std:.3g}")
    rows = result.runs.assign(size=[format_size(size) for size in result.runs["size"]])
    print_frame(rows, {"cost": "{:.3g}", "total_cost": "{:.3g}", "std": "{:.3g}", "share": "{:.0%}"})
    warn(fitted.warnings)


def _write_studies(fitted: LawFit, runs: list[Any], notes: list[str], out: Path, base: Path | None) -> None:
    if out.suffix != ".toml":
        raise ArgumentError(f"--out {out}: must end in .toml.")
    for number, study in enumerate(studies_of(fitted, runs, notes=notes, base=base), start=1):
        path = out if number == 1 else out.with_stem(f"{out.stem}-{number}")
        path.write_text(study.text, encoding="utf-8")
        wrote(path)
