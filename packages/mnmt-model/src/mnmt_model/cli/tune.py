"""`mnmt-model tune`: the learning rate of each size of a study."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence, Set
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mnmt_data.study import read_study
from mnmt_model.errors import RunError
from mnmt_model.sweep.run_queue import SweepWatcher

if TYPE_CHECKING:
    from mnmt_model.cli.sweep_progress import SweepProgress
    from mnmt_model.runs.run_config import RunConfig
    from mnmt_model.sweep.run_queue import Outcome
    from mnmt_model.sweep.tuning import SizeResult, Trial


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
    progress = _TrialsProgress(folder, jobs=jobs)
    sizes_tuned = tune_study(
        file,
        results / "data",
        folder,
        partial(train_runs, folder=folder, jobs=jobs, watcher=progress),
        config=SearchConfig(rungs=rungs, batch=batch),
        sizes=sizes,
        steps=steps,
        transfer=transfer,
        on_trials=progress.start,
    )
    progress.close()
    if not dry_run:
        write_settings(study, {result.size: result.settings for result in sizes_tuned})
    print(json.dumps({"sizes": [asdict(each) for each in sizes_tuned]}) if as_json else _text(sizes_tuned))
    if not as_json:
        print("left as it is" if dry_run else "written", study, sep=": ")


class _TrialsProgress(SweepWatcher):
    """Reports how trials come on, rung by rung, as a sweep reports its runs.

    Args:
        folder: Folder of the trials' records.
        jobs: Trials at a time.
    """

    def __init__(self, folder: Path, *, jobs: int) -> None:
        self.folder, self.jobs = folder, jobs
        self.progress: SweepProgress | None = None

    def start(self, runs: Sequence[RunConfig]) -> None:
        """Report the trials that come next."""
        from mnmt_model.cli.sweep_progress import SweepProgress

        self.close()
        steps, tokens = ({getattr(run.train, name) for run in runs} for name in ("steps", "batch_tokens"))
        what = f"{_span(steps)} steps, each of {_span(tokens)} tokens"
        print(f"next: trials of {what}", file=sys.stderr, flush=True)
        self.progress = SweepProgress(runs, self.folder, jobs=self.jobs)

    def end(self, outcome: Outcome) -> None:
        """Report how a trial ended."""
        assert self.progress is not None
        self.progress.end(outcome)

    def retry(self, run: RunConfig, error: str | None) -> None:
        """Report the first failure of a trial."""
        assert self.progress is not None
        self.progress.retry(run, error)

    def look(self, *, waiting: bool) -> None:
        """Report what runs, once a minute."""
        assert self.progress is not None
        self.progress.look(waiting=waiting)

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self.progress is not None:
            self.progress.close()


def _span(numbers: Set[int]) -> str:
    """Return the least and the largest of some numbers, such as "15 to 60"."""
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _text(results: Sequence[SizeResult]) -> str:
    """Return a table of each size's trials with the best of each length in tokens, and its settings below."""
    lines = []
    for result in results:
        lines.append(result.size)
        best = _best_losses(result.trials)
        for trial in sorted(result.trials, key=_order):
            loss = "failed" if trial.loss is None else f"{trial.loss:.4f}"
            mark = "  best" if trial.loss is not None and trial.loss == best[_length(trial)] else ""
            lines.append(
                f"  {trial.steps:>8,} steps  {trial.batch_tokens:>7,} tokens  "
                f"rate {trial.learning_rate:<8g}  dev loss {loss}{mark}"
            )
        settings = ", ".join(f"{key} = {value!r}" for key, value in result.settings.items())
        lines.append(f"  {settings}")
    return "\n".join(lines)


def _order(trial: Trial) -> tuple[int, int, float]:
    return _length(trial), trial.batch_tokens, trial.learning_rate


def _length(trial: Trial) -> int:
    """Return the tokens that a trial is trained on."""
    return trial.steps * trial.batch_tokens


def _best_losses(trials: Sequence[Trial]) -> dict[int, float]:
    """Return {tokens of a trial: the lowest loss of those on so many}."""
    losses: dict[int, list[float]] = {}
    for trial in trials:
        if trial.loss is not None:
            losses.setdefault(_length(trial), []).append(trial.loss)
    return {length: min(each) for length, each in losses.items()}
