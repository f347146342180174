"""`mnmt-model status`: the states of a study's runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_model.cli.progress import clock_time
from mnmt_model.cli.train import study_runs
from mnmt_model.planning.quantities import table
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.sweep.run_states import RunState, count_states, phase_lines, seconds_left, study_states

REFRESH_SECONDS = 2.0


def status(
    study: Path,
    *,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
    as_json: Annotated[bool, Parameter("--json", negative="")] = False,
) -> None:
    """Print the states of a study's runs on all machines; on a terminal, every two seconds.

    The process of a `dead` run ended without recording it; the next sweep continues it like an interrupted
    one.

    Args:
        study: The study's TOML file.
        out: Folder of the study's results; `results/NAME` by default.
        as_json: Print JSON, once.
    """
    runs, folder = study_runs(study, out)
    states = study_states(runs, folder)
    if as_json:
        counts, rows = count_states(states), [asdict(state) for state in states]
        print(json.dumps({"counts": counts, "seconds_left": seconds_left(states), "runs": rows}))
    elif sys.stdout.isatty():
        _watch(runs, folder)
    else:
        print(status_text(states))


def status_text(states: Sequence[RunState]) -> str:
    """Return the states of runs: a summary, a row for each that has begun and not ended, and failures."""
    open_runs = [state for state in states if state.state in ("running", "interrupted", "dead")]
    heads = ["run", "state", "step", "loss", "steps/s", "left", "on"]
    rows = table([heads, *map(_row, open_runs)], left=2) if open_runs else []
    parts = [[summary(states)], rows, phase_lines(states), list(failure_lines(states))]
    return "\n\n".join("\n".join(part) for part in parts if part)


def summary(states: Sequence[RunState]) -> str:
    """Return the number of runs in each state and the time left: "3 runs: 2 finished, 1 running"."""
    counts = ", ".join(f"{count} {name}" for name, count in count_states(states).items()) or "none is left"
    seconds = seconds_left(states)
    left = f"; about {clock_time(seconds)} left" if seconds else ""
    return f"{len(states)} {'run' if len(states) == 1 else 'runs'}: {counts}{left}"


def failure_lines(states: Sequence[RunState]) -> Iterator[str]:
    """Yield a line for each failed run, with the reason."""
    for state in states:
        if state.state == "failed":
            yield f"failed: {state.run}: {state.error}"


def _watch(runs: Sequence[RunConfig], folder: Path) -> None:
    """Print the states of runs repeatedly, in the same place."""
    lines = 0
    while True:
        states = study_states(runs, folder)
        text = status_text(states)
        over = f"\x1b[{lines}F\x1b[J" if lines else ""
        print(over + text, flush=True)
        lines = text.count("\n") + 1
        if all(state.has_ended for state in states):
            return
        time.sleep(REFRESH_SECONDS)


def _row(state: RunState) -> list[str]:
    return [
        state.run,
        state.state,
        f"{state.step:,}/{state.steps:,}",
        "" if state.loss is None else f"{state.loss:.3f}",
        "" if state.steps_per_second is None else f"{state.steps_per_second:.3g}",
        "" if state.seconds_left is None else clock_time(state.seconds_left),
        state.host or "",
    ]
