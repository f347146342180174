import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mnmt_data.study import read_study
from mnmt_model.errors import RunError
from mnmt_model.runs.run_config import RunConfig, new_record
from mnmt_model.runs.run_record import Eval, append_evals, write_run
from mnmt_model.sweep.run_queue import Outcome

tuning = pytest.importorskip("mnmt_model.sweep.tuning", reason="needs the extra tune", exc_type=ImportError)


class Losses:
    """Stands for training: writes the records of runs whose loss is a function of their settings."""

    def __init__(
        self, folder: Path, loss: Callable[[RunConfig], float | None], *, stop_after: int = 99
    ) -> None:
        self.folder, self.loss, self.stop_after = folder, loss, stop_after
        self.trained: list[RunConfig] = []

    def __call__(self, runs: Sequence[RunConfig]) -> list[Outcome]:
        return [self.train(run) for run in runs]

    def train(self, run: RunConfig) -> Outcome:
        loss, folder = self.loss(run), self.folder / run.name
        if loss is None:
            return Outcome(run=run, status="failed", error="the loss is nan", wall_seconds=0.0)
        if not folder.exists():
            if len(self.trained) == self.stop_after:
                raise KeyboardInterrupt
            self.trained.append(run)
            folder.mkdir(parents=True)
            write_run(folder, new_record(run, folder, vocab_size=9, data=None))
            rows = [(run.train.steps - 1, "dev", 0.0), (run.train.steps, "dev", loss)]
            append_evals(folder, [measured(step, *row, task) for step, *row in rows for task in run.mixture])
        return Outcome(run=run, status="finished", error=None, wall_seconds=1.0)


def measured(step: int, testset: str, value: float, task: str) -> Eval:
    return Eval(
        step=step, tokens=1, flops=1, task=task, testset=testset, metric="loss", value=value, signature=""
    )


def distance_to(best: dict[int, float]) -> Callable[[RunConfig], float | None]:
    def loss(run: RunConfig) -> float | None:
        rate = run.train.learning_rate
        return None if rate > 0.05 else 1 + abs(rate / best[run.model.d_model] - 1)

    return loss


def test_each_size_gets_its_own_best_rate(study_file: Path, results: Path, tmp_path: Path) -> None:
    train = Losses(tmp_path, distance_to({16: 0.02, 24: 0.0025}))
    rates = tuning.tune_study(read_study(study_file), results / "data", tmp_path, train, trials=6, jobs=4)
    assert rates == {"d16": 0.02, "d24": 0.0025}
    assert {run.train.steps for run in train.trained} == {3, 6}
    longer = [run for run in train.trained if run.train.steps == 6]
    assert len(longer) < len(train.trained) / 2  # of every length only the better half go on
    assert len({run.name for run in train.trained}) == len(train.trained)


def test_a_search_that_is_stopped_goes_on_and_trains_nothing_twice(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    study, data, loss = read_study(study_file), results / "data", distance_to({16: 0.02, 24: 0.0025})
    first, second, third = (
        Losses(tmp_path, loss, stop_after=3),
        Losses(tmp_path, loss),
        Losses(tmp_path, loss),
    )
    with pytest.raises(KeyboardInterrupt):
        tuning.tune_study(study, data, tmp_path, first, sizes=["d16"], trials=5)
    assert tuning.tune_study(study, data, tmp_path, second, sizes=["d16"], trials=5) == {"d16": 0.02}
    names = [run.name for run in first.trained + second.trained]
    assert len(set(names)) == len(names)
    assert {run.train.learning_rate for run in second.trained} >= {0.02, 0.0025}
    assert tuning.tune_study(study, data, tmp_path, third, sizes=["d16"], trials=5) == {"d16": 0.02}
    assert not third.trained


def test_a_trial_is_the_studys_run_shortened(study_file: Path, results: Path, tmp_path: Path) -> None:
    text = study_file.read_text(encoding="utf-8").replace(
        "steps = 12", "horizons = [8, 12]\ncooldown_steps = 6\nwarmup_steps = 4"
    )
    study_file = study_file.with_name("cool.toml")
    study_file.write_text(text, encoding="utf-8")
    base = tuning._base_runs(read_study(study_file), results / "data", ["d24"])["d24"]
    assert base.mixture == {"xx-aa": 0.5, "xx-bb": 0.5}  # the most even one of this size
    search = tuning._Search("d24", base, tmp_path)
    _, half_rate = search.ask(2, 2)
    half = search.run(half_rate, 0.5).train
    assert (half.steps, half.cooldown_steps, half.warmup_steps, half.horizons) == (6, 3, 1, ())
    assert (half.learning_rate, half.batch_tokens) == (0.005, 300)


def test_mistakes_are_named(study_file: Path, results: Path, tmp_path: Path) -> None:
    study, data = read_study(study_file), results / "data"
    with pytest.raises(RunError, match="trains no size 'd99'; its sizes are d16, d24"):
        tuning.tune_study(study, data, tmp_path, Losses(tmp_path, lambda run: 1.0), sizes=["d99"])
    with pytest.raises(RunError, match="d16: every trial failed"):
        tuning.tune_study(study, data, tmp_path, Losses(tmp_path, lambda run: None), sizes=["d16"])


def test_rates_are_written_into_tables_of_every_form(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        "[sweep.sizes] # from small to large\nd8 = { d_model = 8 }\nd12 = { learning_rate = 0.1 } # old\n"
        "[sweep.sizes.d16]\nd_model = 16 # twice\n[sweep.fit]\n"
    )
    tuning.write_rates(path, {"d8": 0.02, "d12": 0.03, "d16": 0.04})
    assert path.read_text() == (
        "[sweep.sizes] # from small to large\nd8 = { d_model = 8, learning_rate = 0.02}\n"
        "d12 = { learning_rate = 0.03 } # old\n"
        "[sweep.sizes.d16]\nd_model = 16 # twice\nlearning_rate = 0.04\n[sweep.fit]\n"
    )


def test_the_command_trains_and_writes_the_study(
    command: Callable[..., Any], study_file: Path, results: Path, tmp_path: Path
) -> None:
    study = tmp_path / "tiny.toml"
    shutil.copy(study_file, study)
    (tmp_path / "data").symlink_to(results / "data")
    result = command("tune", study, "--out", tmp_path, "--sizes", "d16", "--trials", 2, "-j", 2)
    assert result.status == 0, result.stderr
    sizes = read_study(study).tables["sweep"]["sizes"]
    assert set(sizes["d16"]) == {"learning_rate"}
    assert sizes["d24"] == {"d_model": 24}
    assert f"d16: learning_rate = {sizes['d16']['learning_rate']:g}" in result.stdout
