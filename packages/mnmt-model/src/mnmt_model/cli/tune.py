"""`mnmt-model tune`: the learning rate of each size of a study."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mnmt_data.study import read_study
from mnmt_model.errors import RunError
from mnmt_model.sweep.run_queue import SweepWatcher

if TYPE_CHECKING:
    from mnmt_model.runs.run_config import RunConfig
    from mnmt_model.sweep.run_queue import Outcome
    from mnmt_model.sweep.tuning import SizeResult


def tune(
    study: Path,
    *,
    sizes: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    batch: Annotated[bool, Parameter(negative="")] = False,
    transfer: Annotated[bool, Parameter(negative="")] = False,
    steps: int | None = None,
    rungs: int = 2,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
    jobs: Annotated[int | None, Parameter(("--jobs", "-j"))] = None,
    as_json: Annotated[bool, Parameter("--json", negative="")] = False,
) -> None:
    """Find the peak learning rate of each size, and write it into the study.

    Rates around the present one, each twice the one before, are tried in short runs with a cool-down; the
    better half of them go on to runs twice as long. The grid becomes wider where its best is at an edge.
    Trials are recorded like runs, in `tune` beside `runs`; what is finished there is not trained again.

    Args:
        study: The study's TOML file.
        sizes: Sizes to tune; all that the study trains by default.
        batch: Try batches of half and twice the tokens too, in as many tokens in all.
        transfer: Tune the narrowest size alone, and give the others its rate times its width over theirs; for
            AdamW.
        steps: Steps of the longest trials; by default half of those of the study's runs.
        rungs: Times that trials become twice as long.
        dry_run: Print the settings, and leave the study as it is.
        out: Folder of the study's results; `results/NAME` by default.
        jobs: Trials to train at a time; by default as many as there are GPUs, or cores if there are none.
        as_json: Print JSON.
    """
    from mnmt_model.sweep import default_jobs, train_runs
    from mnmt_model.sweep.tuning import SearchConfig, tune_study, write_settings

    jobs = default_jobs() if jobs is None else jobs
    for name, number in (("--jobs", jobs), ("--rungs", rungs), ("--steps", 1 if steps is None else steps)):
        if number < 1:
            raise RunError(f"{name} must be at least 1, but is {number}")
    file = read_study(study)
    results = out or Path("results") / file.name
    folder = results / "tune"
    sizes_tuned = tune_study(
        file,
        results / "data",
        folder,
        partial(train_runs, folder=folder, jobs=jobs, watcher=_Report()),
        config=SearchConfig(rungs=rungs, batch=batch),
        sizes=sizes,
        steps=steps,
        transfer=transfer,
        on_trials=partial(_report_start, jobs=jobs),
    )
    if not dry_run:
        write_settings(study, {result.size: result.settings for result in sizes_tuned})
    print(json.dumps({"sizes": [asdict(each) for each in sizes_tuned]}) if as_json else _text(sizes_tuned))
    if not as_json:
        print("left as it is" if dry_run else "written", study, sep=": ")


def _report_start(runs: Sequence[RunConfig], jobs: int) -> None:
    steps = sorted({run.train.steps for run in runs})
    lengths = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    print(f"{len(runs)} trials of {lengths} steps, {jobs} at a time", file=sys.stderr, flush=True)


class _Report(SweepWatcher):
    """Reports how trials end."""

    def end(self, outcome: Outcome) -> None:
        """Report how a trial ended."""
        how = outcome.error or f"in {outcome.wall_seconds:.0f} s"
        print(f"  {outcome.run.name} {outcome.status} {how}", file=sys.stderr, flush=True)


def _text(results: Sequence[SizeResult]) -> str:
    """Return a table of all trials, with the losses of each size, and its settings below them."""
    lines = []
    for result in results:
        lines.append(result.size)
        for trial in sorted(
            result.trials, key=lambda each: (each.steps * each.batch_tokens, each.learning_rate)
        ):
            loss = "failed" if trial.loss is None else f"{trial.loss:.4f}"
            lines.append(
                f"  {trial.steps:>8} steps  {trial.batch_tokens:>7} tokens  "
                f"rate {trial.learning_rate:<8g}  dev loss {loss}"
            )
        settings = ", ".join(f"{key} = {value!r}" for key, value in result.settings.items())
        lines.append(f"  {settings}")
    return "\n".join(lines)
