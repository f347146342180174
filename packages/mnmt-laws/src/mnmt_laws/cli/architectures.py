"""`mnmt-laws architectures`: which architecture is better at which sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mnmt_laws.answers.architectures import compare_architectures
from mnmt_laws.cli.console import print_frame, print_json, warn, wrote
from mnmt_laws.cli.options import (
    DEFAULT_FIT,
    DEFAULT_TABLE,
    Figure,
    FitConfig,
    Json,
    Positive,
    TableConfig,
    open_table,
)
from mnmt_laws.errors import TableError
from mnmt_laws.figures.losses import draw_architectures
from mnmt_laws.figures.style import save


def architectures(
    source: Path | None = None,
    *,
    by: Literal["size", "flops"] = "size",
    n_0: Positive | None = None,
    task: str | None = None,
    table: TableConfig = DEFAULT_TABLE,
    fitting: FitConfig = DEFAULT_FIT,
    figure: Figure = None,
    as_json: Json = False,
) -> None:
    """Compare architectures: α (N_0 / N)^p + L∞ of each, with one N_0 (Zhang et al. 2022).

    Args:
        source: A run table of two architectures or more, or a folder of run records.
        by: What stands for N: the number of parameters, or the FLOPs of training.
        n_0: The size N_0 whose reducible loss α is, such as that of a one-layer encoder-decoder. By default
            the least of any architecture.
        task: The task that the figure draws. By default the first.
        table: What is analysed.
        fitting: How it is fitted.
        figure: Draw all architectures to this `.svg`, `.png`, `.pdf` or `.html` file.
        as_json: Print JSON only.
    """
    if table.architecture is not None:
        raise TableError("leave out --architecture: all architectures are compared.")
    opened = open_table(source, table)
    result = compare_architectures(
        opened.table,
        predictor=by,
        n_0=n_0,
        metric=table.metric,
        testset=table.testset,
        objective=fitting.objective,
        uncertainty=fitting.method,
    )
    if figure is not None:
        save(draw_architectures(result.fits, predictor=by, task=task or result.parameters["task"][0]), figure)
        wrote(figure)
    warnings = [f"{name}: {line}" for name, fitted in result.fits.items() for line in fitted.warnings]
    if as_json:
        names = ("predictor", "n_0", "parameters", "ranges", "crossings")
        document = {name: getattr(result, name) for name in names}
        print_json({**document, "warnings": [*opened.warnings, *warnings]})
        return
    print(f"N_0 = {result.n_0:.4g} {'parameters' if by == 'size' else 'FLOPs'}")
    numbers = [str(name) for name in result.parameters if name not in ("task", "architecture")]
    print_frame(result.parameters, dict.fromkeys(numbers, "{:.4f}"))
    for line in result.describe():
        print(line)
    if len(result.crossings):
        print_frame(
            result.crossings, {**dict.fromkeys(("crossing", "lower", "upper"), "{:.3g}"), "share": "{:.0%}"}
        )
    warn([*opened.warnings, *warnings])
