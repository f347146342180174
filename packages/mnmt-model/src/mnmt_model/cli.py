"""The command line `mnmt-model`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import App, Parameter

from mnmt_data.console import run_app
from mnmt_data.errors import DataError
from mnmt_data.study import StudyFile, read_study
from mnmt_model.errors import RunError
from mnmt_model.parameter_count import count
from mnmt_model.presets import VOCAB_SIZE, preset
from mnmt_model.run_plan import RunPlan

app = App(name="mnmt-model", help="Train Transformers for multilingual translation over sizes and mixtures.")


@app.command
def plan(
    *,
    preset_name: Annotated[str, Parameter("--preset")],
    vocab_size: int = VOCAB_SIZE,
    as_json: Annotated[bool, Parameter("--json", negative="")] = False,
) -> None:
    """Print the parameters of a preset without building it.

    Args:
        preset_name: one of the presets.
        vocab_size: rows of the embedding and of the softmax.
        as_json: print JSON.
    """
    shape = preset(preset_name)
    counted = count(shape, vocab_size)
    parts = asdict(counted)
    if as_json:
        totals = {"size": counted.size, "num_params": counted.num_params}
        print(json.dumps({"preset": preset_name, **totals, **parts, "shape": asdict(shape)}))
        return
    for name, value in (("N (size)", counted.size), ("all parameters", counted.num_params), *parts.items()):
        print(f"{name.replace('_', ' '):<16}{value:>16,}")


@app.command
def train(study: Path, run: str, *, out: Path | None = None) -> None:
    """Train one run of a study, going on from its newest checkpoint.

    Args:
        study: the study's TOML file.
        run: name of the run, as the sweep would call it.
        out: folder of the study's results; `results/NAME` by default.
    """
    from mnmt_model.progress import StepProgress
    from mnmt_model.trainer import train as train_run

    plans, runs = _plans(read_study(study), out)
    chosen = {candidate.name: candidate for candidate in plans}.get(run)
    if chosen is None:
        names = ", ".join(candidate.name for candidate in plans)
        raise RunError(f"{study}: has no run {run!r}; its runs are {names}")
    progress = StepProgress(chosen.train.steps)
    train_run(chosen, runs / run, on_step=progress.step)
    progress.close()
    print(f"trained: {runs / run}")


@app.command
def score(
    run: Path,
    *,
    task: str,
    data: Path | None = None,
    split: str = "train",
    out: Path | None = None,
    batch_tokens: int = 4096,
) -> None:
    """Write the log-probability of every pair of a shard under a run's newest model, going on where it was.

    Args:
        run: folder of the run.
        task: the task whose pairs to score.
        data: folder of prepared data with the run's vocabulary; the run's own by default.
        split: which of the task's splits.
        out: Parquet file to write; RUN/scores/SPLIT.TASK.parquet by default.
        batch_tokens: source and target tokens of a batch, padding included.
    """
    from tqdm import tqdm

    from mnmt_model.score import score_shard

    out = out or run / "scores" / f"{split}.{task}.parquet"
    with tqdm(unit="pair", unit_scale=True, disable=not sys.stderr.isatty()) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)
            if bar.disable:
                print(f"pair {done:,} of {total:,}", file=sys.stderr, flush=True)

        score_shard(run, data, split=split, task=task, out=out, batch_tokens=batch_tokens, on_pairs=advance)
    print(f"scored: {out}")


@app.command
def sweep(
    study: Path,
    *,
    out: Path | None = None,
    jobs: int | None = None,
    as_json: Annotated[bool, Parameter("--json", negative="")] = False,
) -> int:
    """Train every run of a study, a bounded number at a time.

    Interrupted and started again, it goes on where it was. A run that fails is recorded and the rest go on;
    the exit status is then 1.

    Args:
        study: the study's TOML file.
        out: folder of the study's results; `results/NAME` by default.
        jobs: processes at a time; the number of cores by default.
        as_json: print JSON.
    """
    from mnmt_model.progress import SweepProgress
    from mnmt_model.run_queue import sweep as sweep_runs

    jobs = os.cpu_count() or 1 if jobs is None else jobs
    if jobs < 1:
        raise RunError(f"--jobs must be at least 1, but is {jobs}")
    plans, runs = _plans(read_study(study), out)
    progress = SweepProgress(len(plans))
    outcomes = sweep_runs(plans, runs, jobs=jobs, on_end=progress.end)
    progress.close()
    failed = [outcome for outcome in outcomes if outcome.status != "finished"]
    if as_json:
        rows = [
            {"run": o.plan.name, "status": o.status, "error": o.error, "wall_seconds": o.wall_seconds}
            for o in outcomes
        ]
        print(json.dumps({"runs": rows}))
    else:
        print(f"{len(outcomes) - len(failed)} of {len(outcomes)} runs finished: {runs}")
    return 1 if failed else 0


def _plans(study: StudyFile, out: Path | None) -> tuple[Sequence[RunPlan], Path]:
    from mnmt_model.sweep_config import plan_runs

    results = out or Path("results") / study.name
    return plan_runs(study, results / "data"), results / "runs"


def main() -> NoReturn:
    """Run the command line."""
    run_app(app, prog="mnmt-model", errors=(RunError, DataError))
