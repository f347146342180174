"""`mnmt-laws fit`, `compare` and `report`: from run tables to laws."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from mnmt_laws.answers.comparison import compare as compare_laws
from mnmt_laws.cli.console import print_frame, print_json, print_stages, warn, wrote
from mnmt_laws.cli.laws import LawOption
from mnmt_laws.cli.options import (
    DEFAULT_FIT,
    DEFAULT_TABLE,
    FitConfig,
    Json,
    Out,
    TableConfig,
    fit_observations,
    observe_table,
    open_table,
)
from mnmt_laws.cli.question import WantConfig, parse_preference
from mnmt_laws.fitting.parameters import fit_document, format_fit
from mnmt_laws.forecasts.rivals import at_longest, usual_law
from mnmt_laws.laws import LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.report.analysis import no_progress
from mnmt_laws.report.build import build_report
from mnmt_laws.solver.objective import ObjectiveName


def fit(
    source: Path | None = None,
    *,
    law: LawOption | None = None,
    table: TableConfig = DEFAULT_TABLE,
    fitting: FitConfig = DEFAULT_FIT,
    as_json: Json = False,
) -> None:
    """Fit a law to every task and print its parameters.

    Args:
        source: A run table, or a folder of run records.
        law: The law to fit; by default joint, or where all models have one size, transfer.
        table: What is analysed.
        fitting: How it is fitted.
        as_json: Print JSON only.
    """
    observations = observe_table(source, table)
    if law is None:
        observations, lines = at_longest(observations)
        warn(lines)
    usual = usual_law(observations)
    default: LawName | Law = "joint" if "size" in usual.predictors else usual
    fitted = fit_observations(observations, law or default, fitting)
    if as_json:
        print_json(fit_document(fitted))
        return
    print(format_fit(fitted))
    warn(fitted.warnings)


def compare(
    source: Path | None = None,
    *,
    table: TableConfig = DEFAULT_TABLE,
    objective: ObjectiveName = "log-ols",
    as_json: Json = False,
) -> None:
    """Find the law that the table prefers, and the parameter that the mixture moves: β, L∞, α, or all.

    Args:
        source: A run table, or a folder of run records.
        table: What is analysed.
        objective: The objective of the fits, as in `mnmt-laws fit`.
        as_json: Print JSON only.
    """
    observations, lines = at_longest(observe_table(source, table))
    warn(lines)
    result = compare_laws(observations, objective=objective)
    if as_json:
        names = ("verdict", "best", "decided", "reasons", "forms")
        print_json({"laws": result.table, **{name: getattr(result, name) for name in names}})
        return
    seeds = ["lack_of_fit"] if result.table["lack_of_fit"].notna().any() else []
    columns = ["task", "label", "num_params", "scatter", "aic", "bic", *seeds]
    formats = {"scatter": "{:.2%}", "aic": "{:.1f}", "bic": "{:.1f}", **dict.fromkeys(seeds, "{:.2g}")}
    print_frame(result.table[columns], formats)
    print(f"\n{result.verdict}\n")
    forms = result.forms.dropna(axis="columns", how="all")
    print_frame(forms, dict.fromkeys(forms.columns[1:], "{:.2%}"))


def report(
    source: Path | None = None,
    *,
    out: Annotated[Path | None, Out] = None,
    table: TableConfig = DEFAULT_TABLE,
    prefer: str | None = None,
    fitting: FitConfig = DEFAULT_FIT,
    as_json: Json = False,
) -> None:
    """Write the report of a study: a page, its figures, the numbers as JSON, and the run table.

    Args:
        source: A run table, or a folder of run records.
        out: The folder to write. By default `report`, beside the source.
        table: What is analysed.
        prefer: The importance of each task's loss, as in `en-de:2,en-zh:1`; by default that of the study's
            `[goal]`, or equal.
        fitting: How it is fitted.
        as_json: Print JSON only: the path of the page, the advice, the findings and the warnings.
    """
    folder = out or (Path("report") if source is None else source.resolve().parent / "report")
    opened = open_table(source, table)
    WantConfig(prefer=prefer).state_goal(opened.table.goal)
    trained = opened.table.frame[opened.table.frame["weight"] > 0]
    with nullcontext(no_progress) if as_json else print_stages() as progress:
        written = build_report(
            opened,
            out=folder,
            metric=table.metric,
            testset=table.testset,
            architecture=table.architecture,
            objective=fitting.objective,
            prior=fitting.prior,
            uncertainty=fitting.method,
            preference=None if prefer is None else parse_preference(prefer, sorted(trained["task"].unique())),
            progress=progress,
        )
    if as_json:
        names = ("headline", "quality", "findings", "warnings")
        print_json({"index": str(written.index), **{name: getattr(written, name) for name in names}})
        return
    warn(written.warnings)
    for line in filter(None, (written.headline, written.quality, str(written.index))):
        wrote(line)
