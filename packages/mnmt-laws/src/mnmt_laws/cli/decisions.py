"""`mnmt-laws frontier`, `recommend` and `design`: from laws to decisions."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from cyclopts import Parameter
from cyclopts.validators import Number

from mnmt_laws.answers.comparison.preferred_law import is_mixed, usual_law
from mnmt_laws.answers.comparison.rivals import lengths_vary
from mnmt_laws.answers.design.next_runs import design as design_runs
from mnmt_laws.answers.design.study_toml import runs_of, studies_of
from mnmt_laws.answers.mixtures.best_mixture import FLOPS_PER_TOKEN_PARAMETER, LEAST_WEIGHT
from mnmt_laws.answers.mixtures.budget import smallest_budget
from mnmt_laws.answers.mixtures.doubts import tests_behind
from mnmt_laws.answers.mixtures.frontier import frontier as predict_frontier
from mnmt_laws.answers.mixtures.targets import meet_targets, smallest_size
from mnmt_laws.answers.recommendation import recommend as recommend_mixture
from mnmt_laws.cli.answer_text import Answer, design_lines, format_answer, study_of
from mnmt_laws.cli.console import print_frame, print_json, warn, wrote
from mnmt_laws.cli.options import (
    DEFAULT_FIT,
    DEFAULT_TABLE,
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
from mnmt_laws.figures.decisions import draw_design, draw_frontier
from mnmt_laws.figures.style import format_size, save
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.laws import LAWS, LawName
from mnmt_laws.tables.observations import Observations

Size = Annotated[float | None, Parameter(validator=Number(gt=0))]
Toml = Annotated[bool, Parameter("--toml", negative="")]
BaseStudy = Annotated[Path | None, Parameter("--study")]

_PRINTED_POINTS = 13  # about as many points of a frontier are printed as a table


def frontier(
    source: Path | None = None,
    *,
    size: Size = None,
    tokens: Size = None,
    law: LawName | None = None,
    table: TableConfig = DEFAULT_TABLE,
    fitting: FitConfig = DEFAULT_FIT,
    figure: Figure = None,
    as_json: Json = False,
) -> None:
    """Predict the loss of every task over the mixtures, at one size and training length.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: The number of parameters N; any size.
        tokens: The training length D, target tokens of all tasks, for laws that know it.
        law: How losses depend on size, length and mixture. By default `capacity`, or with `--tokens`
            `share-tied`; `simplex-capacity` and `simplex-share` where a weight occurs in several mixtures.
        table: What is analysed.
        fitting: How it is fitted.
        figure: Draw the frontier of two tasks to this `.svg`, `.png`, `.pdf` or `.html` file.
        as_json: Print JSON only.
    """
    observations = observe_table(source, table)
    name = _law_of(observations, law, length=tokens is not None)
    _check_model(name, size=size, tokens=tokens)
    fitted = fit_observations(observations, name, fitting)
    result = predict_frontier(fitted, size=size, tokens=tokens)
    if figure is not None:
        if size is None:
            raise TableError(f"leave out --figure: it draws one size, but the {name} law does not know it.")
        length = {} if tokens is None else {"tokens": tokens}
        save(draw_frontier(fitted, sizes=[size], **length), figure)
        wrote(figure)
    weights = {name: result.weight[index].to_numpy() for index, name in enumerate(fitted.sources)}
    if as_json:
        names = ("value", "lower", "upper")
        tasks = {
            task: {
                **({"weight": weights[task]} if task in weights else {}),
                **{name: result[name].sel(task=task).to_numpy() for name in names},
            }
            for task in fitted.tasks
        }
        mixtures = {} if fitted.sources == fitted.tasks else {"sources": weights}
        document = {"size": size, "tokens": tokens, "law": fitted.law.name, "tasks": tasks, **mixtures}
        efficient = result.efficient.to_numpy().tolist()
        print_json({**document, "efficient": efficient, "warnings": fitted.warnings})
        return
    step = max(1, result.sizes["point"] // _PRINTED_POINTS)
    columns = {f"weight {name}": values[::step] for name, values in weights.items()}
    columns |= {f"value {task}": result.value.sel(task=task).to_numpy()[::step] for task in fitted.tasks}
    print_frame(pd.DataFrame(columns), dict.fromkeys(columns, "{:.4f}"))
    _print_back_tests(fitted, size=size, tokens=tokens)
    warn(fitted.warnings)


def recommend(
    source: Path | None = None,
    *,
    size: Size = None,
    tokens: Size = None,
    budget: Size = None,
    prefer: str | None = None,
    targets: str | None = None,
    least_weight: Annotated[float, Parameter(validator=Number(gte=0))] = LEAST_WEIGHT,
    flops_per_token_parameter: Positive | None = None,
    law: LawName | None = None,
    toml: Toml = False,
    study: BaseStudy = None,
    table: TableConfig = DEFAULT_TABLE,
    fitting: FitConfig = DEFAULT_FIT,
    as_json: Json = False,
) -> None:
    """Recommend the weights of the tasks, for a preference or to meet targets.

    With a budget, size and training length are recommended as well. With targets and no size, the answer is
    the smallest size that meets them, and for laws that know the training length, without tokens either, the
    least compute.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: The number of parameters N; any size.
        tokens: The training length D, target tokens of all tasks, for laws that know it.
        budget: The FLOPs of the run, in place of size or tokens or both.
        prefer: How much each task's loss matters, as in `en-de:2,en-zh:1`. By default all matter equally.
        targets: The loss that each task should reach, as in `en-de:0.9,en-zh:1.2`. Takes the place of a
            preference.
        least_weight: The smallest weight that a task may get.
        flops_per_token_parameter: What a run costs, by default 6: C = 6 N D.
        law: How losses depend on size, length and mixture. By default `capacity`, or with `--tokens` or
            `--budget`, or for targets alone where lengths vary, `share-tied`; `simplex-capacity` and
            `simplex-share` where a weight occurs in several mixtures.
        toml: Print the TOML of a study that trains the answer, and nothing else.
        study: The study file whose sections and sizes the TOML takes over.
        table: What is analysed.
        fitting: How it is fitted.
        as_json: Print JSON only.
    """
    _check_options(size, budget, prefer, targets, law)
    _check_output(toml=toml, as_json=as_json, study=study)
    observations = observe_table(source, table)
    preference = None if prefer is None else _parse_preference(prefer, observations.tasks)
    losses = {} if targets is None else _parse_numbers(targets, observations.tasks, "--targets")
    smallest = bool(losses) and size is None
    longer = smallest and lengths_vary(observations.fit)
    name = _law_of(observations, law, length=longer or tokens is not None or budget is not None)
    by_length = smallest and LAWS[name].knows_length and tokens is None
    _check_rate(flops_per_token_parameter, computes=budget is not None or by_length)
    if budget is None and not losses:
        _check_model(name, size=size, tokens=tokens)
    fitted = fit_observations(observations, name, fitting)
    shared: dict[str, Any] = {"least_weight": least_weight}
    rate: dict[str, Any] = {
        "flops_per_token_parameter": flops_per_token_parameter or FLOPS_PER_TOKEN_PARAMETER
    }
    answer: Answer
    if smallest:
        answer = (
            smallest_budget(fitted, targets=losses, **rate, **shared)
            if by_length
            else smallest_size(fitted, tokens=tokens, targets=losses, **shared)
        )
    elif losses and size is not None:
        answer = meet_targets(fitted, size=size, tokens=tokens, targets=losses, **shared)
    else:
        answer = recommend_mixture(
            fitted, size=size, tokens=tokens, budget=budget, preference=preference, **rate, **shared
        )
    warnings = (*fitted.warnings, *answer.warnings)
    if as_json:
        next_runs = getattr(answer, "next_runs", None)
        document = {key: value for key, value in asdict(answer).items() if key != "next_runs"}
        runs = {} if next_runs is None else {"next_runs": next_runs.runs}
        print_json({**document, **runs, "law": fitted.law.name, "warnings": warnings})
        return
    if toml:
        print(study_of(answer, fitted, study), end="")
    else:
        for line in format_answer(answer, fitted):
            print(line)
        _print_back_tests(fitted, size=answer.size, tokens=answer.tokens)
    warn(warnings)


def _check_output(*, toml: bool, as_json: bool, study: Path | None) -> None:
    if toml and as_json:
        raise TableError("--toml and --json: give one; each prints nothing else.")
    if study is not None and not toml:
        raise TableError("--study goes with --toml.")


def _check_rate(rate: float | None, *, computes: bool) -> None:
    if rate is not None and not computes:
        raise TableError("--flops-per-token-parameter goes with --budget, or the least compute of --targets.")


def _law_of(observations: Observations, law: LawName | None, *, length: bool) -> LawName:
    """Return the law that was named, or the one that suits the question and the table."""
    if law is None and len(observations.tasks) > 1 and not is_mixed(observations):
        raise TableError("all models here have one mixture; others cannot be predicted without runs of them.")
    name = law or usual_law(observations, length=length)
    if not LAWS[name].knows_mixture:
        raise TableError(
            f"--law {name}: predicts no other mixtures than those trained; choose capacity, share-tied, "
            "simplex-share or another law of mixtures."
        )
    return name


def _check_model(law: LawName, *, size: float | None, tokens: float | None) -> None:
    """Refuse a size or a length that is missing or superfluous, before anything is computed."""
    for name, value in (("size", size), ("tokens", tokens)):
        if value is None and name in LAWS[law].predictors:
            raise TableError(f"give --{name}: the {law} law predicts from it.")
        if value is not None and name not in LAWS[law].predictors:
            raise TableError(f"leave out --{name}: the {law} law does not know it.")


def _print_back_tests(fitted: LawFit, *, size: float | None, tokens: float | None) -> None:
    """Print the error of the back-tests behind an answer that extrapolates."""
    for test in tests_behind(fitted, size=size, tokens=tokens):
        print(f"back-test: {test.describe()}")


def _check_options(
    size: float | None, budget: float | None, prefer: str | None, targets: str | None, law: LawName | None
) -> None:
    if prefer is not None and targets is not None:
        raise TableError("--prefer and --targets are two questions; give one of them.")
    if budget is not None and targets is not None:
        raise TableError(
            "--budget and --targets: give one; without --size, --targets finds the least budget."
        )
    sizeless = law is not None and "size" not in LAWS[law].predictors
    if size is None and targets is None and budget is None and not sizeless:
        raise TableError(
            "give --size, for the best weights at a size, or --targets, for the smallest size, or --budget, "
            "for the best size, length and weights."
        )


def _parse_numbers(text: str, tasks: list[str], option: str) -> dict[str, float]:
    """Return `en-de:2,en-zh:1` as numbers by task.

    Raises:
        TableError: If it cannot be read or names another task.
    """
    try:
        items = (item.rsplit(":", 1) for item in text.split(","))
        numbers = {task.strip(): float(value) for task, value in items}
    except ValueError:
        numbers = {}
    if not numbers:
        raise TableError(
            f"{option}: must be TASK:NUMBER between commas, as in {_example(tasks)}, but is {text!r}."
        )
    if unknown := [task for task in numbers if task not in tasks]:
        raise TableError(f"{option}: names {unknown[0]!r}; the tasks are {', '.join(tasks)}.")
    return numbers


def _parse_preference(text: str, tasks: list[str]) -> dict[str, float]:
    numbers = _parse_numbers(text, tasks, "--prefer")
    if set(numbers) != set(tasks) or not all(0 < number < math.inf for number in numbers.values()):
        raise TableError(
            f"--prefer: must give each task a number above 0, as in {_example(tasks)}, but is {text!r}."
        )
    return numbers


def _example(tasks: list[str]) -> str:
    return ",".join(f"{task}:1" for task in tasks)


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
    name = _law_of(observations, law, length="tokens=" in quantity)
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
