"""The `mnmt-laws` command line."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from mnmt_laws.collect import collect as collect_records
from mnmt_laws.console import run_app
from mnmt_laws.errors import TableError
from mnmt_laws.figures.frontier import draw_frontier
from mnmt_laws.figures.style import save
from mnmt_laws.fit import fit as fit_law
from mnmt_laws.frontier import frontier as predict_frontier
from mnmt_laws.recommend import recommend as recommend_mixture
from mnmt_laws.laws import LawName
from mnmt_laws.observations import select
from mnmt_laws.parameters import fit_document, format_fit
from mnmt_laws.report import build_report
from mnmt_laws.results import LawFit
from mnmt_laws.source import open_source
from mnmt_laws.uncertainty import Perturbation

app = App(
    name="mnmt-laws",
    help="Scaling laws of multilingual translation, fitted to tables of losses.",
    version=version("mnmt-laws"),
    suppress_keyboard_interrupt=False,  # `run_app` says so in one line
)

Json = Annotated[bool, Parameter("--json", negative="")]
Size = Annotated[float, Parameter(validator=Number(gt=0))]
Noise = Annotated[float, Parameter(validator=Number(gt=0))]
Refits = Annotated[int, Parameter(validator=Number(gte=0))]
ObjectiveName = Literal["log-ols", "ols"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Selection:
    """What of the table is analysed."""

    metric: str = "loss"
    """A value of the `metric` column."""

    testset: str | None = None
    """A value of the `testset` column; by default `test`, or the only one there is."""

    architecture: str | None = None
    """A value of the `architecture` column; may be left out where there is only one."""


_ALL_LOSSES = Selection()


@app.command
def collect(runs: Path, *, output: Annotated[Path, Parameter(("--output", "-o"))]) -> None:
    """Write the run table of a folder of run records.

    Args:
        runs: A run record, or a folder of them.
        output: The `.csv` or `.parquet` file to write.
    """
    collected = collect_records(runs)
    if output.suffix == ".parquet":
        collected.table.to_parquet(output, index=False)
    elif output.suffix == ".csv":
        collected.table.to_csv(output, index=False)
    else:
        raise TableError(f"--output {output}: must end in .csv or .parquet.")
    _warn(collected.warnings)
    print(f"{output}: {len(collected.table)} rows of {collected.table['run'].nunique()} runs")


@app.command
def fit(
    source: Path,
    *,
    law: LawName = "joint",
    objective: ObjectiveName = "log-ols",
    refits: Refits = 200,
    noise: Noise = 0.01,
    selection: Selection = _ALL_LOSSES,
    as_json: Json = False,
) -> None:
    """Fit a law to every task and print its parameters.

    Args:
        source: A run table, or a folder of run records.
        law: `per-weighting` (eq. 6), `joint` (eq. 7) or `capacity` (eqs. 11, 12) of Fernandes et al. 2023.
        objective: Least squares of log-losses, or of losses.
        refits: Refits to losses with noise, from which standard deviations come.
        noise: Standard deviation of that noise, as a share of each loss.
        selection: What of the table is fitted.
        as_json: Print JSON only.
    """
    fitted = _fit(source, law, objective, Perturbation(share=noise, refits=refits), selection)
    if as_json:
        _print_json(fit_document(fitted))
        return
    print(format_fit(fitted))
    _warn(fitted.warnings)
    if not fitted.converged:
        _warn(["the search did not converge for every task"])


@app.command
def frontier(
    source: Path,
    *,
    size: Size,
    objective: ObjectiveName = "log-ols",
    selection: Selection = _ALL_LOSSES,
    figure: Path | None = None,
    as_json: Json = False,
) -> None:
    """Predict the losses of two tasks over their weights at one size.

    Args:
        source: A run table of two tasks, or a folder of run records.
        size: N, parameters; any size.
        objective: Least squares of log-losses, or of losses.
        selection: What of the table is fitted.
        figure: Draw the frontier to this `.svg`, `.png` or `.pdf` file.
        as_json: Print JSON only.
    """
    capacity = _fit(source, "capacity", objective, Perturbation(refits=0), selection)
    predicted = predict_frontier(capacity, size=size)
    if figure is not None:
        save(draw_frontier(capacity, sizes=[size]), figure)
    if as_json:
        losses = {str(task): predicted.sel(task=task).values.tolist() for task in predicted.task.values}
        weights = predicted.weight.values.tolist()
        _print_json(
            {"size": size, "weights": weights, "predicted": losses, "warnings": list(capacity.warnings)}
        )
        return
    print(predicted.T.to_pandas().iloc[::8].to_string(float_format=lambda value: f"{value:.4f}"))
    _warn(capacity.warnings)


@app.command
def recommend(
    source: Path,
    *,
    size: Size,
    prefer: str | None = None,
    objective: ObjectiveName = "log-ols",
    selection: Selection = _ALL_LOSSES,
    as_json: Json = False,
) -> None:
    """Recommend the weights of two tasks at one size.

    Args:
        source: A run table of two tasks, or a folder of run records.
        size: N, parameters; any size.
        prefer: How much each task's loss matters, as `en-de:2,en-zh:1`; equally by default.
        objective: Least squares of log-losses, or of losses.
        selection: What of the table is fitted.
        as_json: Print JSON only.
    """
    capacity = _fit(source, "capacity", objective, Perturbation(refits=0), selection)
    preference = None if prefer is None else _parse_preference(prefer, capacity.tasks)
    advice = recommend_mixture(capacity, size=size, preference=preference)
    if as_json:
        _print_json(asdict(advice))
        return
    for task, weight in advice.weights.items():
        unit = capacity.observations.unit
        print(
            f"{task}: weight {weight:.3f}, predicted {selection.metric} {advice.predicted[task]:.4f} {unit}"
        )
    _warn((*capacity.warnings, *advice.warnings))


@app.command
def report(
    source: Path,
    *,
    out: Path | None = None,
    objective: ObjectiveName = "log-ols",
    refits: Refits = 200,
    noise: Noise = 0.01,
    selection: Selection = _ALL_LOSSES,
) -> None:
    """Write the report of a study: index.html, report.json, runs.csv and figures.

    Args:
        source: A run table, or a folder of run records.
        out: Folder to write; by default `report` beside the source.
        objective: Least squares of log-losses, or of losses.
        refits: Refits to losses with noise, from which standard deviations come.
        noise: Standard deviation of that noise, as a share of each loss.
        selection: What of the table is analysed.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    folder = out or source.resolve().parent / "report"
    written = build_report(
        source,
        out=folder,
        objective=objective,
        perturbation=Perturbation(share=noise, refits=refits),
        **asdict(selection),
    )
    print(f"{written.index}")
    for line in written.findings[:5]:
        print(f"- {line}")
    _warn(written.warnings)


def main() -> None:
    """Run the command line."""
    run_app(app, prog="mnmt-laws", errors=(TableError,))


def _fit(
    source: Path, law: LawName, objective: str, perturbation: Perturbation, selection: Selection
) -> LawFit:
    opened = open_source(source)
    _warn(opened.warnings)
    observations = select(opened.table, **asdict(selection))
    return fit_law(observations, law=law, objective=objective, uncertainty=perturbation)


def _parse_preference(text: str, tasks: list[str]) -> dict[str, float]:
    """`en-de:2,en-zh:1` as numbers by task."""
    try:
        items = (item.rsplit(":", 1) for item in text.split(","))
        preference = {task.strip(): float(value) for task, value in items}
    except ValueError:
        preference = {}
    if set(preference) != set(tasks) or min(preference.values()) <= 0:
        example = ",".join(f"{task}:1" for task in tasks)
        raise TableError(f"--prefer: must give each task a number above 0, as {example}, but is {text!r}.")
    return preference


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def _warn(warnings: Iterable[str]) -> None:
    for line in warnings:
        print(f"warning: {line}", file=sys.stderr)
