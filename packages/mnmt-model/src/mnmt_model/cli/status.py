"""`mnmt-model status`: the states of a study's runs."""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_model.cli.train import study_runs

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
    from mnmt_model.cli.display import RunDisplay
    from mnmt_model.sweep.run_states import count_states, seconds_left, study_states

    runs, folder = study_runs(study, out)
    if as_json:
        states = study_states(runs, folder)
        counts, rows = count_states(states), [asdict(state) for state in states]
        print(json.dumps({"counts": counts, "seconds_left": seconds_left(states), "runs": rows}))
        return
    display = RunDisplay(partial(study_states, runs, folder), folder, file=sys.stdout)
    if not sys.stdout.isatty():
        print(display.text())
        return
    with closing(display):
        display.look()
        while not all(state.has_ended for state in display.states()):
            time.sleep(REFRESH_SECONDS)
            display.look()
