"""The plan of a study as text."""

from __future__ import annotations

from collections.abc import Iterator

from mnmt_model.planning.quantities import data_size, duration, si, table
from mnmt_model.sweep.study_plan import MOST_EPOCHS, RunCost, StudyPlan

MOST_COLUMNS = 3
"""The most tasks that have a column of epochs each; of more, the one that is read most often has one."""


def study_text(plan: StudyPlan) -> str:
    """Return a plan as a table, with a row for each run and one for all, and what to note below it."""
    timed = plan.seconds is not None
    active = any(run.active_size < run.size for run in plan.runs)
    tasks = _tasks(plan)
    heads = ["run", "role", "N", *["active"] * active, "parameters", "steps", "tokens", *_epoch_heads(tasks)]
    heads += ["FLOPs", *["time"] * timed, "memory"]
    rows = [heads, *(_row(run, timed, active, tasks) for run in plan.runs)]
    total = [
        f"{len(plan.runs)} runs",
        *[""] * (4 + active),
        si(plan.tokens),
        *[""] * len(_epoch_heads(tasks)),
        si(plan.flops),
        *([duration(plan.seconds)] if plan.seconds is not None else []),
        data_size(max((run.memory.total for run in plan.runs), default=0)),
    ]
    notes = [*_notes(plan), *_warnings(plan)]
    return "\n".join([f"{plan.study}\n", *table([*rows, total], left=2), "", *notes])


def _tasks(plan: StudyPlan) -> list[str]:
    """Return the tasks that any run is trained on."""
    return list(dict.fromkeys(task for run in plan.runs for task in run.epochs))


def _epoch_heads(tasks: list[str]) -> list[str]:
    return [f"epochs {task}" for task in tasks] if len(tasks) <= MOST_COLUMNS else ["most epochs"]


def _row(run: RunCost, timed: bool, active: bool, tasks: list[str]) -> list[str]:
    time = [duration(run.seconds)] if timed and run.seconds is not None else []
    sizes = [f"{run.size:,}", *[f"{run.active_size:,}"] * active]
    numbers = [*sizes, f"{run.num_params:,}", f"{run.steps:,}", si(run.tokens), *_epochs(run, tasks)]
    return [run.name, run.role, *numbers, si(run.flops), *time, data_size(run.memory.total)]


def _epochs(run: RunCost, tasks: list[str]) -> list[str]:
    if len(tasks) <= MOST_COLUMNS:
        return [f"{run.epochs[task]:.2g}" if task in run.epochs else "-" for task in tasks]
    task = max(run.epochs, key=lambda task: run.epochs[task])
    return [f"{run.epochs[task]:.2g} {task}"]


def _notes(plan: StudyPlan) -> Iterator[str]:
    """Yield the sentences below the table."""
    devices = f"{plan.devices} devices" if plan.devices > 1 else "one device"
    yield f"vocabulary of {plan.vocab_size:,} tokens; {devices} a run; the last memory is the most"
    if plan.wall_seconds is not None:
        runs = f"{plan.jobs} runs at a time" if plan.jobs > 1 else "one run at a time"
        yield f"the whole study: about {duration(plan.wall_seconds)} with {runs}, the longest first"
    if plan.measured_models:
        yield (
            f"times are of this machine, from steps of {plan.measured_models} of its models; "
            "for another give --flops-per-second"
        )
    if plan.measured_models and plan.devices > 1:
        yield "the time leaves out what devices exchange"
    if plan.seconds is not None and any(run.exchange_seconds is None for run in plan.runs):
        yield "the time leaves out what devices exchange: give --exchange-bytes-per-second"
    elif plan.seconds is not None and plan.exchange_bytes:
        even = any(run.assumes_even_choices for run in plan.runs)
        kind, condition = ("estimates", ", and choices are even") if even else ("upper bounds", "")
        yield f"times are {kind} at these rates: devices do nothing while they exchange{condition}"
    yield from _slot_note(plan)
    if plan.device_memory is not None:
        yield _memory_note(plan, plan.device_memory)


def _memory_note(plan: StudyPlan, gib: float) -> str:
    """Say which runs do not fit into the memory of a device."""
    large = sorted(
        (run for run in plan.runs if not plan.fits(run)), key=lambda run: run.memory.total, reverse=True
    )
    if not large:
        return f"every run fits into {gib:g} GiB a device"
    return (
        f"does not fit into {gib:g} GiB a device: {_examples([run.name for run in large])}, up to "
        f"{data_size(large[0].memory.total)}; raise `accumulation`, set `activation_checkpointing`, "
        '`precision` or `parallel = "fsdp"`, or give --devices'
    )


def _slot_note(plan: StudyPlan) -> Iterator[str]:
    """Name the run that leaves most slots of its experts empty, and the batch that would fill them."""
    poor = sorted((run for run in plan.runs if run.filling), key=lambda run: run.filled)
    if poor and (filling := poor[0].filling):
        yield (
            f"slots of the experts are at most {poor[0].filled:.0%} full in "
            f"{_examples([run.name for run in poor])}, which executes "
            f"{poor[0].executed_flops / poor[0].flops:.2f} FLOPs for a useful one; they are full with "
            f"`batch_tokens` {filling.batch_tokens} and `accumulation` {filling.accumulation}"
        )


def _warnings(plan: StudyPlan) -> Iterator[str]:
    """Yield what to reconsider about runs, and the tasks that are read too often, with a run of each."""
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
    """Return the first name, and how many there are besides."""
    more = len(names) - 1
    return names[0] + (f" and {more} other{'s' * (more > 1)}" if more else "")
