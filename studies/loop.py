"""Train the advised mixture and equal weights at a study's target size, and compare both with the prediction.

    python -m studies.loop train studies/synthetic.toml      after the sweep
    python -m studies.loop compare studies/synthetic.toml    after the scores and the report

`[goal]` of the study names the size. Its runs are held out: no law is fitted to them, so a second call
gives the same advice and trains nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
from cyclopts import App

from benchmarks.measurement import Figures
from mnmt_data.store import write_json
from mnmt_data.study import StudyFile, read_study
from mnmt_eval.runs.run_scores import read_run_scores
from mnmt_laws import observe, recommend
from mnmt_laws.answers.decision import Want
from mnmt_laws.answers.design.study_toml import mixture_line, round_mixture
from mnmt_laws.arrays import Array
from mnmt_laws.sentences.advice import advice_sentences
from mnmt_model import RunConfig, count_parameters, run_configs, train_runs
from mnmt_model.cli.progress import SweepProgress
from mnmt_model.sweep import GoalConfig, default_jobs

PREDICTION = "target.json"
METRICS = ("bleu", "chrf")
ADVISED, EQUAL = "advised", "equal weights"

app = App(help=__doc__)


@app.command
def train(path: Path) -> None:
    """Write down the advice for the target size and what it predicts, then train it and equal weights.

    Args:
        path: The study file, whose sweep is done.
    """
    study, folder = read_study(path), results_of(path)
    size = study.section("goal", GoalConfig).size
    if size is None:
        raise SystemExit(f"{path}: [goal] names no `size` to train.")
    prediction = predict(study, size, folder)
    write_json(folder / PREDICTION, prediction)
    mixtures = [part["mixture"] for part in prediction["mixtures"].values()]
    runs = target_runs(study, size, mixtures, folder / "data")
    jobs = default_jobs()
    with closing(SweepProgress(runs, folder / "runs", jobs=jobs)) as progress:
        outcomes = train_runs(runs, folder / "runs", jobs=jobs, watcher=progress)
    if failed := [f"{outcome.run.name}: {outcome.error}" for outcome in outcomes if outcome.error]:
        raise SystemExit("\n".join(failed))


@app.command
def compare(path: Path) -> None:
    """Print what was predicted and what was reached, the advice, and the address of the page.

    Args:
        path: The study file, whose target runs are trained and scored, and whose report is written.
    """
    folder = results_of(path)
    prediction = json.loads((folder / PREDICTION).read_text(encoding="utf-8"))
    frame = observe(folder / "runs", testset="test").frame
    ends = frame.sort_values("step").groupby(["run", "task"])["value"].last().unstack()
    reached: dict[str, dict[str, float]] = {}
    for name, part in prediction["mixtures"].items():
        losses = ends.loc[part["runs"]].mean()
        reached[name] = {str(task): float(loss) for task, loss in losses.items()}
    quality = {name: quality_of(folder, part["runs"]) for name, part in prediction["mixtures"].items()}
    print("\n".join(lines_of(prediction, reached, quality)))
    print(prediction["answer"])
    print(f"page: {(folder / 'report/index.html').resolve().as_uri()}")


def results_of(path: Path) -> Path:
    """Return the folder of a study's results."""
    return Path("results") / read_study(path).name


def predict(study: StudyFile, size_name: str, folder: Path) -> Figures:
    """Return the advised mixture and equal weights, their runs, and what each is expected to reach."""
    tasks = study.tables["data"]["tasks"]
    equal = dict.fromkeys(tasks, 1 / len(tasks))
    size = count_parameters(target_runs(study, size_name, [equal], folder / "data")[0].model, 1).size
    observations = observe(folder / "runs", testset="test")
    goal = study.section("goal", GoalConfig)
    advice = recommend(observations, size=size, aim=goal.aim, preference=goal.importance or None)
    mixtures = {ADVISED: round_mixture(advice.weights), EQUAL: round_mixture(equal)}
    sources = advice.forecast.sources
    points = np.array([[mixture.get(name, 0.0) for name in sources] for mixture in mixtures.values()])
    losses = advice.forecast.models(points)
    costs = advice.want.costs(losses, np.zeros((len(losses), 1)), advice.forecast.tasks)
    parts: dict[str, Figures] = {}
    for k, (name, mixture) in enumerate(mixtures.items()):
        runs = target_runs(study, size_name, [mixture], folder / "data")
        by_task = dict(zip(advice.forecast.tasks, map(interval_of, losses[:, :, k].T), strict=True))
        parts[name] = {"mixture": mixture, "runs": [run.name for run in runs], "losses": by_task}
        parts[name]["cost"] = interval_of(costs[:, k])
    gain = interval_of(costs[:, 1] - costs[:, 0])
    return {
        "answer": " ".join(filter(None, advice_sentences(advice))),
        "size": size,
        "aim": goal.aim,
        "importance": advice.want.importance,
        "mixtures": parts,
        "gain": gain,
    }


def interval_of(draws: Array) -> list[float]:
    """Return the mean of draws and the ends of their 95% interval."""
    return [float(draws.mean()), *np.quantile(draws, [0.025, 0.975]).tolist()]


def target_runs(
    study: StudyFile, size: str, mixtures: Sequence[Mapping[str, float]], data: Path
) -> list[RunConfig]:
    """Return the held-out runs of a size, trained as long as any, without shorter branches."""
    different = [mixture for k, mixture in enumerate(mixtures) if mixture not in mixtures[:k]]
    grids = {"fit": {"sizes": [size], "mixtures": different}, "held_out": []}
    tables = {**study.tables, "sweep": {**study.tables["sweep"], **grids}}
    runs = run_configs(replace(study, tables=tables), data)
    return [replace(run, role="held-out") for run in runs if run.branch is None]


def quality_of(folder: Path, names: Sequence[str]) -> dict[str, list[float]]:
    """Return {task: BLEU and chrF on the test set, the means over runs}, as `mnmt-eval score` wrote them."""
    scores = [read_run_scores(folder / "runs" / name) for name in names]
    values = [{metric: each.values("test", metric) for metric in METRICS} for each in scores]
    return {
        task: [fmean(each[metric][task] for each in values) for metric in METRICS]
        for task in values[0][METRICS[0]]
    }


def lines_of(
    prediction: Figures,
    reached: Mapping[str, Mapping[str, float]],
    quality: Mapping[str, Mapping[str, Sequence[float]]],
) -> Iterator[str]:
    """Yield what was predicted and what was reached, as lines."""
    want, costs = Want(aim=prediction["aim"], importance=prediction["importance"]), {}
    yield f"a model of {prediction['size']:,} parameters"
    yield f"{'':10} {'loss predicted (95%)':25}  reached   BLEU   chrF"
    for name, part in prediction["mixtures"].items():
        losses = np.array([[[reached[name][task]] for task in part["losses"]]])
        costs[name] = want.costs(losses, np.zeros((1, 1)), [*part["losses"]]).item()
        yield f"{name}, {mixture_line(part['mixture'])}"
        for task, predicted in part["losses"].items():
            scores = "".join(f"  {value:5.1f}" for value in quality[name].get(task, ()))
            yield f"  {task:8} {described(predicted)}  {reached[name][task]:.4f} {scores}"
        yield f"  {want.aim:8} {described(part['cost'])}  {costs[name]:.4f}"
    yield f"{'gain':10} {described(prediction['gain'])}  {costs[EQUAL] - costs[ADVISED]:.4f}"


def described(numbers: Sequence[float]) -> str:
    """Return a prediction and its interval."""
    return "{:.4f} ({:.4f} to {:.4f})".format(*numbers)


if __name__ == "__main__":
    app()
