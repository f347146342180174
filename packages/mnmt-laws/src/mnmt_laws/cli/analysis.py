"""`mnmt-laws collect`, `fit`, `compare` and `report`: from run records to laws."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_laws.answers.comparison import compare as compare_laws
from mnmt_laws.cli.console import print_frame, print_json, warn
from mnmt_laws.cli.options import (
    DEFAULT_FITTING,
    DEFAULT_READING,
    Figure,
    Fitting,
    Json,
    Reading,
    fit_loaded,
    load,
    open_chosen,
)
from mnmt_laws.errors import TableError
from mnmt_laws.figures.comparison import draw_comparison
from mnmt_laws.figures.style import save
from mnmt_laws.fitting.parameters import fit_document, format_fit
from mnmt_laws.fitting.storage import save as save_fit
from mnmt_laws.laws import LawName
from mnmt_laws.report import build_report
from mnmt_laws.tables.collect import collect as collect_records


def collect(
    runs: Path, *, output: Annotated[Path, Parameter(("--output", "-o"))], as_json: Json = False
) -> None:
    """Write the run table of a folder of run records.

    Args:
        runs: A run record, or a folder of them.
        output: The `.csv` or `.parquet` file to write.
        as_json: Print JSON only.
    """
    collected = collect_records(runs)
    if output.suffix == ".parquet":
        collected.table.to_parquet(output, index=False)
    elif output.suffix == ".csv":
        collected.table.to_csv(output, index=False)
    else:
        raise TableError(f"--output {output}: must end in .csv or .parquet.")
    rows, count = len(collected.table), collected.table["run"].nunique()
    if as_json:
        print_json({"output": str(output), "rows": rows, "runs": count, "warnings": collected.warnings})
        return
    warn(collected.warnings)
    print(f"{output}: {rows} rows of {count} runs")


def fit(
    source: Path | None = None,
    *,
    law: LawName = "joint",
    reading: Reading = DEFAULT_READING,
    fitting: Fitting = DEFAULT_FITTING,
    output: Annotated[Path | None, Parameter(("--output", "-o"))] = None,
    as_json: Json = False,
) -> None:
    """Fit a law to every task and print its parameters.

    Args:
        source: A run table, or a folder of run records.
        law: Which law; `joint` is eq. 7 of Fernandes et al. 2023, `capacity` eqs. 11 and 12.
        reading: What is analysed.
        fitting: How.
        output: Save the fit to this `.nc` (NetCDF) or `.json` file.
        as_json: Print JSON only.
    """
    fitted = fit_loaded(load(source, reading), law, fitting)
    if output is not None:
        save_fit(fitted, output)
    if as_json:
        print_json(fit_document(fitted))
        return
    print(format_fit(fitted))
    warn(fitted.warnings)


def compare(
    source: Path | None = None,
    *,
    reading: Reading = DEFAULT_READING,
    fitting: Fitting = DEFAULT_FITTING,
    figure: Figure = None,
    as_json: Json = False,
) -> None:
    """Find which parameter the mixture acts through: β, L∞, α, or all of them.

    Args:
        source: A run table, or a folder of run records.
        reading: What is analysed.
        fitting: How.
        figure: Draw the comparison to this `.svg`, `.png` or `.pdf` file.
        as_json: Print JSON only.
    """
    loaded = load(source, reading)
    found = compare_laws(loaded.observations, objective=fitting.objective, uncertainty=fitting.method)
    if figure is not None:
        save(draw_comparison(found.table), figure)
    if as_json:
        checks = [asdict(check) for check in found.constancy]
        print_json({"verdict": found.verdict, "best": found.best, "laws": found.table, "constancy": checks})
        return
    columns = ["task", "label", "num_params", "scatter", "aic", "bic", "size_error", "weight_error"]
    percent = dict.fromkeys(("scatter", "size_error", "weight_error"), "{:.2%}")
    print_frame(found.table[columns], {"aic": "{:.1f}", "bic": "{:.1f}", **percent})
    print(f"\n{found.verdict}")


def report(
    source: Path | None = None,
    *,
    out: Path | None = None,
    reading: Reading = DEFAULT_READING,
    fitting: Fitting = DEFAULT_FITTING,
    as_json: Json = False,
) -> None:
    """Write the report of a study: index.html, report.json, runs.csv and figures.

    Args:
        source: A run table, or a folder of run records.
        out: Folder to write; by default `report` beside the source.
        reading: What is analysed.
        fitting: How.
        as_json: Print JSON only: where the report is and what it found.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    folder = out or (Path("report") if source is None else source.resolve().parent / "report")
    written = build_report(
        open_chosen(source, reading),
        out=folder,
        metric=reading.metric,
        testset=reading.testset,
        architecture=reading.architecture,
        horizon=reading.horizon,
        objective=fitting.objective,
        uncertainty=fitting.method,
    )
    if as_json:
        print_json({"index": str(written.index), "findings": written.findings, "warnings": written.warnings})
        return
    print(f"{written.index}")
    for line in written.findings[:6]:
        print(f"- {line}")
    warn(written.warnings)
