"""`mnmt-model train` and `sweep`: training one run of a study, and all of them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mnmt_data.study import read_study
from mnmt_model.errors import RunError

if TYPE_CHECKING:
    from mnmt_model.runs.run_config import RunConfig
    from mnmt_model.sweep.run_queue import Outcome


def train(study: Path, run: str, *, out: Annotated[Path | None, Parameter(("--out", "-o"))] = None) -> None:
    """Train one run of a study, or continue it from its newest checkpoint.

    Under torchrun (`torchrun --nproc-per-node 4 -m mnmt_model train …`), several processes train it together.

    Args:
        study: The study's TOML file.
        run: Name of the run, as `sweep` calls it.
        out: Folder of the study's results; `results/NAME` by default.
    """
    from mnmt_model.cli.progress import StepProgress
    from mnmt_model.training.run import train as train_run

    configs, folder = _runs(study, out)
    config = {candidate.name: candidate for candidate in configs}.get(run)
    if config is None:
        names = ", ".join(candidate.name for candidate in configs)
        raise RunError(f"{study}: has no run {run!r}; its runs are {names}")
    train_run(config, folder / run, watchers=[StepProgress(config.train.steps)])
    if os.environ.get("RANK", "0") == "0":
        print(f"trained: {folder / run}")


def sweep(
    study: Path,
    *,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
    jobs: Annotated[int | None, Parameter(("--jobs", "-j"))] = None,
    as_json: Annotated[bool, Parameter("--json", negative="")] = False,
) -> int:
    """Train every run of a study, several at a time.

    A sweep that was interrupted continues when it is started again. A run that fails is recorded, and the
    others go on; the exit status is then 1.

    Args:
        study: The study's TOML file.
        out: Folder of the study's results; `results/NAME` by default.
        jobs: Runs to train at a time; by default as many as there are GPUs, or cores if there are none.
        as_json: Print JSON.
    """
    from mnmt_model.cli.progress import SweepProgress
    from mnmt_model.sweep.run_queue import default_jobs, train_runs, training_cost

    jobs = default_jobs() if jobs is None else jobs
    if jobs < 1:
        raise RunError(f"--jobs must be at least 1, but is {jobs}")
    configs, folder = _runs(study, out)
    costs = {config.name: training_cost(config) for config in configs}
    progress = SweepProgress(len(configs), costs=costs, jobs=jobs)
    outcomes = train_runs(configs, folder, jobs=jobs, on_end=progress.end)
    progress.close()
    num_failed = sum(outcome.status != "finished" for outcome in outcomes)
    if as_json:
        print(json.dumps({"runs": [_row(outcome) for outcome in outcomes]}))
    else:
        print(f"{len(outcomes) - num_failed} of {len(outcomes)} runs finished: {folder}")
    return 1 if num_failed else 0


def _runs(path: Path, out: Path | None) -> tuple[Sequence[RunConfig], Path]:
    """Return the runs of a study, and the folder of their records."""
    from mnmt_model.sweep.sweep_config import run_configs

    study = read_study(path)
    results = out or Path("results") / study.name
    return run_configs(study, results / "data"), results / "runs"


def _row(outcome: Outcome) -> dict[str, object]:
    return {
        "run": outcome.run.name,
        "status": outcome.status,
        "error": outcome.error,
        "wall_seconds": outcome.wall_seconds,
    }
