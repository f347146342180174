"""`mnmt-model status`: where the runs of a study stand."""

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
    """Print where the runs of a study stand, whichever machines train them; on a terminal, every two seconds.

    A `dead` run has ended without a word; like an interrupted one it goes on with the next sweep.

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
    """Return where runs stand: a line for all, a row for each that has begun and not ended, and failures."""
    open_runs = [state for state in states if state.state in ("running", "interrupted", "dead")]
    heads = ["run", "state", "step", "loss", "steps/s", "left", "on"]
    rows = table([heads, *map(_row, open_runs)], left=2) if open_runs else []
    parts = [[summary(states)], rows, phase_lines(states), list(failure_lines(states))]
    return "\n\n".join("\n".join(part) for part in parts if part)


def summary(states: Sequence[RunState]) -> str:
    """Return how many runs are in each state, such as "3 runs: 2 finished, 1 running", and the time left."""
    counts = ", ".join(f"{count} {name}" for name, count in count_states(states).items()) or "none is left"
    seconds = seconds_left(states)
    left = f"; about {clock_time(seconds)} left" if seconds else ""
    return f"{len(states)} {'run' if len(states) == 1 else 'runs'}: {counts}{left}"


def failure_lines(states: Sequence[RunState]) -> Iterator[str]:
    """Yield a line for each run that has failed, with the reason."""
    for state in states:
        if state.state == "failed":
            yield f"failed: {state.run}: {state.error}"


def _watch(runs: Sequence[RunConfig], folder: Path) -> None:
    """Print where runs stand again and again, each time over the last."""
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
