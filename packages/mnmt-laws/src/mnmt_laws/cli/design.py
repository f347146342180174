"""`mnmt-laws design`: the runs to train next."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from mnmt_laws.answers.design.next_runs import design as design_runs
from mnmt_laws.answers.design.study_toml import runs_of, studies_of
from mnmt_laws.cli.answer_text import design_lines
from mnmt_laws.cli.choice_of_law import law_of
from mnmt_laws.cli.console import print_frame, print_json, warn, wrote
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
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import ResidualBootstrap
from mnmt_laws.laws import LawName


def design(
    source: Path | None = None,
    *,
    quantity: str,
    runs: Annotated[int, Parameter(validator=Number(gte=1), converter=whole_number)] = 3,
    budget: Positive = math.inf,
    law: LawName | None = None,
    table: TableConfig = DEFAULT_TABLE,
    refits: Refits = DEFAULT_REFITS,
    out: Annotated[Path | None, Out] = None,
    study: Path | None = None,
    as_json: Json = False,
) -> None:
    """Propose the runs to train next, which make a quantity most certain.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        quantity: The quantity to make more certain: `loss:TASK@size=1e9,p=0.3`, `fraction:TASK@p=0.1`,
            `weight:TASK@size=1e9` (the best weight), `limit:TASK`, `exponent:TASK` or
            `size:TASK=0.9,TASK=1.1` (the smallest size that meets targets). For a law that knows the training
            length, `tokens=1e10` follows the size, as in `size:TASK=0.9@tokens=1e10`.
        runs: The number of runs to propose.
        budget: The FLOPs that all of them may cost at most.
        law: The law of size, length and mixture. By default `capacity`, or where the quantity names
            tokens `share-tied`; `simplex-capacity` and `simplex-share` where a weight occurs in several
            mixtures.
        table: The part of the table to analyse.
        refits: The number of refits, from which the uncertainty comes.
        out: Write the study that trains these runs to this `.toml` file; runs that do not fit one grid of
            sizes × mixtures go to files beside it.
        study: The study file whose sections and sizes are copied.
        as_json: Print JSON only.
    """
    if study is not None and out is None:
        raise TableError("--study goes with --out.")
    observations = observe_table(source, table)
    name = law_of(observations, law, length="tokens=" in quantity)
    fitted = fit(observations, law=name, uncertainty=ResidualBootstrap(refits=refits))
    result = design_runs(fitted, quantity=quantity, runs=runs, budget=budget)
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
