"""The command line `mnmt-model`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import App, Parameter

from mnmt_data.console import run_app
from mnmt_data.errors import DataError
from mnmt_data.study import StudyFile, read_study
from mnmt_model.errors import RunError
from mnmt_model.planning.plan_options import PlanOptions
from mnmt_model.planning.presets import PRESET_NAMES, preset
from mnmt_model.runs.run_config import RunPlan

app = App(name="mnmt-model", help="Train Transformers for multilingual translation over sizes and mixtures.")


@app.command
def plan(
    study: Path | None = None,
    *,
    preset_name: Annotated[str | None, Parameter("--preset")] = None,
    options: Annotated[PlanOptions, Parameter("*")] = PlanOptions(),  # noqa: B008 - it is frozen
    out: Path | None = None,
    as_json: Annotated[bool, Parameter("--json", negative="")] = False,
) -> None:
    """Print what training takes before anything is trained: parameters, FLOPs, memory, time.

    Of a preset by part, or of every run of a study whose data are prepared.

    Args:
        study: A study's TOML file.
        preset_name: A published model instead, such as fernandes-l12-d1024 or zhang-base-l6-prefix-lm-deep.
        options: What to assume.
        out: Folder of the study's results; `results/NAME` by default.
        as_json: Print JSON.
    """
    from mnmt_model.planning.plan import plan_model, plan_study
    from mnmt_model.planning.plan_text import model_json, model_text, study_json, study_text

    if (study is None) == (preset_name is None):
        raise RunError(f"plan takes a study or --preset NAME; the presets are {', '.join(PRESET_NAMES)}")
    if preset_name is not None:
        planned = plan_model(preset_name, preset(preset_name), options)
        print(json.dumps(model_json(planned)) if as_json else model_text(planned))
    elif study is not None:
        read = read_study(study)
        costs = plan_study(read, (out or Path("results") / read.name) / "data", options)
        print(json.dumps(study_json(costs)) if as_json else study_text(costs))


@app.command
def train(study: Path, run: str, *, out: Path | None = None) -> None:
    """Train one run of a study, going on from its newest checkpoint.

    Started by torchrun (`torchrun --nproc-per-node 4 -m mnmt_model train …`), processes train it together.

    Args:
        study: The study's TOML file.
        run: Name of the run, as the sweep would call it.
        out: Folder of the study's results; `results/NAME` by default.
    """
    from mnmt_model.cli.progress import StepProgress
    from mnmt_model.training.run import train as train_run

    plans, runs = _plans(read_study(study), out)
    chosen = {candidate.name: candidate for candidate in plans}.get(run)
    if chosen is None:
        names = ", ".join(candidate.name for candidate in plans)
        raise RunError(f"{study}: has no run {run!r}; its runs are {names}")
    progress = StepProgress(chosen.train.steps)
    train_run(chosen, runs / run, watchers=[progress])
    if os.environ.get("RANK", "0") == "0":
        print(f"trained: {runs / run}")


@app.command
def average(run: Path, *, last: int | None = None, best: int | None = None, out: Path | None = None) -> None:
    """Average the weights of some of a run's checkpoints, for translating or to start others from.

    Args:
        run: Folder of the run.
        last: How many of the newest.
        best: Instead, how many of those with the lowest dev loss; keep them with `keep_best` in [train].
        out: Folder to write; RUN/averages/last-N or best-N by default.
    """
    from mnmt_model.checkpoints.average import AVERAGES, choose
    from mnmt_model.checkpoints.average import average as average_checkpoints
    from mnmt_model.runs.load import dev_loss
    from mnmt_model.runs.run_record import read_run

    if (last is None) == (best is None) or min(last or 1, best or 1) < 1:
        raise RunError("give either --last N or --best N, with an N of at least 1")
    read_run(run)
    out = out or run / AVERAGES / (f"last-{last}" if last else f"best-{best}")
    chosen = choose(run, last=last, best=best)
    average_checkpoints(chosen, out)
    names = ", ".join(path.name for path in chosen)
    print(f"averaged: {out} ({names}), dev loss {dev_loss(out):.4f} nats a token")


@app.command
def export(
    run: Path,
    *,
    out: Path,
    checkpoint: Path | None = None,
    ctranslate2: bool = True,
    pairs: int = 200,
) -> None:
    """Write a run's T5 1.1 for transformers and CTranslate2, with a certificate that they agree with it.

    Args:
        run: Folder of the run.
        out: Folder to write, which must not be there; its `ctranslate2` holds the CTranslate2 model.
        checkpoint: A checkpoint or average of the run; its newest checkpoint by default.
        ctranslate2: Whether to convert to CTranslate2 too.
        pairs: About how many test pairs to compare.
    """
    from mnmt_model.export import export_run

    certificate = export_run(run, out, checkpoint=checkpoint, with_ctranslate2=ctranslate2, pairs=pairs)
    print(f"exported: {out} ({len(certificate.pairs)} pairs agree under {', '.join(certificate.engines)})")


@app.command(name="import")
def import_(folder: Path, *, out: Path) -> None:
    """Make a run of a Hugging Face T5 1.1, to start others from.

    Args:
        folder: Config.json with its safetensors.
        out: Folder of the run, which must not be there.
    """
    from mnmt_model.export import import_run

    print(f"imported: {import_run(folder, out)}")


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
        run: Folder of the run.
        task: The task whose pairs to score.
        data: Folder of prepared data with the run's vocabulary; the run's own by default.
        split: Which of the task's splits.
        out: Parquet file to write; RUN/scores/SPLIT.TASK.parquet by default.
        batch_tokens: Source and target tokens of a batch, padding included.
    """
    from tqdm import tqdm

    from mnmt_model.runs.log_probs import score_shard

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
        study: The study's TOML file.
        out: Folder of the study's results; `results/NAME` by default.
        jobs: Processes at a time; as many as there are GPUs by default, or cores.
        as_json: Print JSON.
    """
    from mnmt_model.cli.progress import SweepProgress
    from mnmt_model.sweep.run_queue import cost, default_jobs
    from mnmt_model.sweep.run_queue import sweep as sweep_runs

    jobs = default_jobs() if jobs is None else jobs
    if jobs < 1:
        raise RunError(f"--jobs must be at least 1, but is {jobs}")
    plans, runs = _plans(read_study(study), out)
    progress = SweepProgress(len(plans), costs={plan.name: cost(plan) for plan in plans}, jobs=jobs)
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
    from mnmt_model.sweep.sweep_config import plan_runs

    results = out or Path("results") / study.name
    return plan_runs(study, results / "data"), results / "runs"


def main() -> NoReturn:
    """Run the command line."""
    run_app(app, prog="mnmt-model", errors=(RunError, DataError))
