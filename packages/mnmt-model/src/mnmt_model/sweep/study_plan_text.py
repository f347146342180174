"""The plan of a study as text."""

from __future__ import annotations

from collections.abc import Iterator

from mnmt_model.planning.quantities import data_size, duration, si, table
from mnmt_model.sweep.study_plan import MOST_EPOCHS, RunCost, StudyPlan

MOST_COLUMNS = 3
"""Most tasks with a column of epochs each; of more tasks, one column shows the most epochs."""


def study_text(plan: StudyPlan) -> str:
    """Return a plan as a table with a row for each run and a total, and notes below."""
    timed = plan.seconds is not None
    active = any(run.active_size < run.size for run in plan.runs)
    tasks = _tasks(plan)
    heads = ["run", "role", "N", *["active"] * active, "parameters", "steps", "tokens", *_epoch_heads(tasks)]
    heads += ["FLOPs", *["time"] * timed, "memory" if timed else "least memory"]
    rows = [heads, *(_row(run, timed, active, tasks) for run in plan.runs)]
    total = [
        f"{len(plan.runs)} run{'s' * (len(plan.runs) != 1)}",
        *[""] * (4 + active),
        si(plan.tokens),
        *[""] * len(_epoch_heads(tasks)),
        si(plan.flops),
        *([duration(plan.seconds)] if plan.seconds is not None else []),
        data_size(max((run.memory for run in plan.runs), default=0)),
    ]
    notes = [*_notes(plan), *_warnings(plan)]
    return "\n".join([f"{plan.study}\n", *table([*rows, total], left=2), "", *notes])


def _tasks(plan: StudyPlan) -> list[str]:
    """Return the tasks of all runs."""
    return list(dict.fromkeys(task for run in plan.runs for task in run.epochs))


def _epoch_heads(tasks: list[str]) -> list[str]:
    return [f"epochs {task}" for task in tasks] if len(tasks) <= MOST_COLUMNS else ["most epochs"]


def _row(run: RunCost, timed: bool, active: bool, tasks: list[str]) -> list[str]:
    time = [duration(run.seconds)] if timed and run.seconds is not None else []
    sizes = [f"{run.size:,}", *[f"{run.active_size:,}"] * active]
    numbers = [*sizes, f"{run.num_params:,}", f"{run.steps:,}", si(run.tokens), *_epochs(run, tasks)]
    return [run.name, run.role, *numbers, si(run.flops), *time, data_size(run.memory)]


def _epochs(run: RunCost, tasks: list[str]) -> list[str]:
    if len(tasks) <= MOST_COLUMNS:
        return [f"{run.epochs[task]:.2g}" if task in run.epochs else "-" for task in tasks]
    task = max(run.epochs, key=lambda task: run.epochs[task])
    return [f"{run.epochs[task]:.2g} {task}"]


def _notes(plan: StudyPlan) -> Iterator[str]:
    """Yield the sentences below the table."""
    yield f"vocabulary of {plan.vocab_size:,} tokens; the last memory is the most"
    if plan.wall_seconds is None:
        yield "the memory is that of weights, gradients and optimiser; no step was measured for the rest"
        return
    runs = f"{plan.jobs} runs at a time" if plan.jobs > 1 else "one run at a time"
    yield f"the whole study: about {duration(plan.wall_seconds)} with {runs}, the longest first"
    models = "one of its models" if plan.measured_models == 1 else f"{plan.measured_models} of its models"
    yield f"times and memory are of this machine, from steps of {models}"


def _warnings(plan: StudyPlan) -> Iterator[str]:
    """Yield warnings about runs and about tasks with too many epochs, each with an example run."""
    for warning in dict.fromkeys(warning for run in plan.runs for warning in run.warnings):
        names = [run.name for run in plan.runs if warning in run.warnings]
        yield f"warning: {_examples(names)}: {warning}"
    for task in _tasks(plan):
        often = [run for run in plan.runs if run.epochs.get(task, 0.0) > MOST_EPOCHS]
        if often:
            often.sort(key=lambda run: run.epochs[task], reverse=True)
            yield (
                f"warning: {task} is read more than {MOST_EPOCHS:g} times, up to "
                f"{often[0].epochs[task]:.1f} times, by {_examples([run.name for run in often])}"
            )


def _examples(names: list[str]) -> str:
    """Return the first name and the number of others, as text."""
    more = len(names) - 1
    return names[0] + (f" and {more} other{'s' * (more > 1)}" if more else "")
