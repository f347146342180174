import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mnmt_data.study import read_study
from mnmt_model.errors import RunError
from mnmt_model.runs.run_config import RunConfig, new_record
from mnmt_model.runs.run_record import Eval, append_evals, write_run
from mnmt_model.sweep.run_queue import Outcome
from mnmt_model.sweep.tuning import SearchConfig, tune_study
from mnmt_model.sweep.tuning.halving import Candidate
from mnmt_model.sweep.tuning.trials import base_runs, trial_run, with_candidate


class Losses:
    """Stands for training: writes the records of runs whose loss is a function of their settings."""

    def __init__(self, folder: Path, loss: Callable[[RunConfig], float | None]) -> None:
        self.folder, self.loss = folder, loss
        self.trained: list[RunConfig] = []

    def __call__(self, runs: Sequence[RunConfig]) -> list[Outcome]:
        return [self.train(run) for run in runs]

    def train(self, run: RunConfig) -> Outcome:
        self.trained.append(run)
        loss, folder = self.loss(run), self.folder / run.name
        folder.mkdir(parents=True)
        write_run(folder, new_record(run, folder, vocab_size=9, data=None))
        if loss is None:
            return Outcome(run=run, status="failed", error="the loss is nan", wall_seconds=0.0)
        rows = [
            Eval(
                step=step,
                tokens=1,
                flops=1,
                task=task,
                testset=testset,
                metric="loss",
                value=value,
                signature="",
            )
            for step, task, testset, value in (
                (run.train.steps - 1, "xx-aa", "dev", 0.0),
                (run.train.steps, "xx-aa", "dev", loss),
                (run.train.steps, "xx-bb", "dev", loss),
                (run.train.steps, "xx-aa", "test", 0.0),
            )
        ]
        append_evals(folder, rows)
        return Outcome(run=run, status="finished", error=None, wall_seconds=1.0)


def test_each_size_gets_its_own_best_rate(study_file: Path, results: Path, tmp_path: Path) -> None:
    best = {16: 0.08, 24: 0.0025}

    def loss(run: RunConfig) -> float | None:
        rate = run.train.learning_rate
        return None if rate > 0.2 else 1 + abs(rate / best[run.model.d_model] - 1)

    train = Losses(tmp_path, loss)
    small, large = tune_study(read_study(study_file), results / "data", tmp_path, train)
    assert (small.size, small.settings, small.loss) == ("d16", {"learning_rate": 0.08}, 1.0)
    assert (large.size, large.settings) == ("d24", {"learning_rate": 0.0025})
    assert {run.train.steps for run in train.trained} == {3, 6}
    assert len({run.name for run in train.trained}) == len(train.trained)
    assert {run.mixture["xx-bb"] for run in train.trained} >= {0.7}


def test_a_trial_is_the_studys_run_shortened(study_file: Path, results: Path) -> None:
    text = study_file.read_text(encoding="utf-8").replace(
        "steps = 12", "steps = 12\ncooldown_steps = 6\nwarmup_steps = 4"
    )
    study_file = study_file.with_name("cool.toml")
    study_file.write_text(text, encoding="utf-8")
    base = base_runs(read_study(study_file), results / "data", ["d24"])["d24"]
    assert base.mixture == {"xx-aa": 0.5, "xx-bb": 0.5}  # the most even one of this size
    half = trial_run(base, "d24", Candidate(rate=1), 6).train
    assert (half.steps, half.cooldown_steps, half.warmup_steps) == (6, 3, 1)
    assert (half.learning_rate, half.batch_tokens) == (0.02, 300)
    assert with_candidate(replace(base.train, horizons=(10, 12)), Candidate(batch=1)).horizons == (5, 6)
    double = trial_run(base, "d24", Candidate(batch=1), 6).train
    assert double.steps * double.batch_tokens == half.steps * half.batch_tokens
    assert double.cooldown_steps == 2


def test_another_batch_brings_its_steps_along(study_file: Path, results: Path, tmp_path: Path) -> None:
    def loss(run: RunConfig) -> float:
        return abs(run.train.learning_rate - 0.02) + abs(run.train.batch_tokens - 600) / 600

    (result,) = tune_study(
        read_study(study_file),
        results / "data",
        tmp_path,
        Losses(tmp_path, loss),
        config=SearchConfig(batch=True),
        sizes=["d16"],
    )
    assert result.settings == {
        "learning_rate": 0.02,
        "batch_tokens": 600,
        "steps": 6,
        "warmup_steps": 0,
        "cooldown_steps": 0,
    }


def test_rates_of_other_widths_follow_from_the_narrowest(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    train = Losses(tmp_path, lambda run: abs(run.train.learning_rate - 0.005))
    with pytest.raises(RunError, match=r"d16: rates .* suit `adamw`, but `optimizer` is `adafactor`"):
        tune_study(read_study(study_file), results / "data", tmp_path, train, transfer=True)
    path = tmp_path / "adamw.toml"
    path.write_text(study_file.read_text().replace("steps = 12", 'steps = 12\noptimizer = "adamw"'))
    small, large = tune_study(read_study(path), results / "data", tmp_path, train, transfer=True)
    assert {run.model.d_model for run in train.trained} == {16}
    assert (small.settings, large.settings) == ({"learning_rate": 0.005}, {"learning_rate": 0.00333})
    assert large.loss is None


def test_mistakes_are_named(study_file: Path, results: Path, tmp_path: Path) -> None:
    study, data = read_study(study_file), results / "data"
    with pytest.raises(RunError, match="trains no size 'd99'; its sizes are d16, d24"):
        tune_study(study, data, tmp_path, Losses(tmp_path, lambda run: 1.0), sizes=["d99"])
    with pytest.raises(RunError, match="d16: 5 rungs need trials of at least 16 steps"):
        tune_study(
            study,
            data,
            tmp_path,
            Losses(tmp_path, lambda run: 1.0),
            config=SearchConfig(rungs=5),
            sizes=["d16"],
        )
    with pytest.raises(RunError, match=r"d16: every trial failed, such as .*: the loss is nan"):
        tune_study(study, data, tmp_path, Losses(tmp_path, lambda run: None), sizes=["d16"])


def test_the_command_trains_writes_the_study_and_trains_nothing_twice(
    command: Callable[..., Any], study_file: Path, results: Path, tmp_path: Path
) -> None:
    study = tmp_path / "tiny.toml"
    shutil.copy(study_file, study)
    (tmp_path / "data").symlink_to(results / "data")
    options = ("--out", tmp_path, "--sizes", "d16", "--rungs", 1, "--steps", 2, "-j", 2, "--json")
    dry = command("tune", study, *options, "--dry-run")
    assert dry.status == 0, dry.stderr
    assert study.read_text() == study_file.read_text()
    records = {path: path.stat().st_mtime_ns for path in tmp_path.glob("tune/*/evals.jsonl")}
    assert len(records) >= 5
    result = command("tune", study, *options)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("tune/*/evals.jsonl")} == records
    (size,) = json.loads(result.stdout)["sizes"]
    rate = size["settings"]["learning_rate"]
    assert read_study(study).tables["sweep"]["sizes"]["d16"] == {"learning_rate": rate}
    assert min(size["trials"], key=lambda trial: trial["loss"])["learning_rate"] == rate
