"""Search the learning rate of each size with Optuna in short runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, log
from pathlib import Path

import optuna
import tomlkit
from optuna.pruners import SuccessiveHalvingPruner
from optuna.samplers import TPESampler
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import TrialState

from mnmt_data.store import atomic_file, open_prepared
from mnmt_data.study import StudyFile
from mnmt_model.errors import RunError
from mnmt_model.runs.losses import mean_dev_loss
from mnmt_model.runs.run_config import RunConfig, config_fingerprint
from mnmt_model.runs.run_record import read_evals
from mnmt_model.sweep.run_queue import Outcome
from mnmt_model.sweep.study_runs import run_configs
from mnmt_model.sweep.sweep_config import SweepConfig, run_name

FIRST_FACTORS = (1.0, 0.5, 2.0, 0.25, 4.0)
"""Factors on the current rate for the first trials; Optuna chooses the others."""
LARGEST_FACTOR = 8.0
LENGTHS = (0.25, 0.5)
"""Lengths of trials as fractions of the study's runs; the better half continues at the next length."""
RATE = "learning_rate"
STORAGE = "optuna.jsonl"
"""Optuna's journal, in the folder of the trials."""

TrainRuns = Callable[[Sequence[RunConfig]], Sequence[Outcome]]
"""Trains runs, and returns the outcome of each."""


def tune_study(
    study: StudyFile,
    data: Path,
    folder: Path,
    train: TrainRuns,
    *,
    sizes: Sequence[str] = (),
    trials: int = 8,
    jobs: int = 1,
) -> dict[str, float]:
    """Return {size: learning rate} with the lowest dev loss.

    A trial is a run of the study's most even mixture with a shortened schedule: the cool-down keeps its share
    of the steps, since without one high rates look too bad. Earlier trials are not trained again.

    Args:
        study: The study.
        data: Folder of its prepared data.
        folder: Folder of the trials' records, and of Optuna's journal.
        train: Trains runs in folders of their names in `folder`.
        sizes: Names of the sizes; all that the study trains by default.
        trials: Rates to try for each size.
        jobs: Runs that train at a time.

    Raises:
        RunError: If the study has no such size, or every trial of a size fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bases = _base_runs(study, data, sizes)
    searches = [_Search(size, base, folder) for size, base in bases.items()]
    number = -(-jobs // len(searches))
    while asked := [(search, trial) for search in searches for trial in search.ask(number, trials)]:
        for rung, length in enumerate(LENGTHS, start=1):
            runs = [search.run(trial, length) for search, trial in asked]
            outcomes = {each.run.name: each for each in train(list({run.name: run for run in runs}.values()))}
            losses = [_loss(outcomes[run.name], folder) for run in runs]
            # Report the best first, since the others must beat it to continue at the next length.
            order = sorted(range(len(asked)), key=losses.__getitem__)
            asked = [asked[i] for i in order if asked[i][0].promotes(asked[i][1], losses[i], rung)]
    return {search.size: search.best_rate() for search in searches}


def write_rates(path: Path, rates: Mapping[str, float]) -> None:
    """Write {size: learning rate} into a study's file, preserving its comments and layout."""
    document = tomlkit.parse(path.read_text(encoding="utf-8-sig"))
    for size, rate in rates.items():
        document["sweep"]["sizes"][size][RATE] = rate
    with atomic_file(path) as file:
        file.write(tomlkit.dumps(document).encode("utf-8"))


def _base_runs(study: StudyFile, data: Path, sizes: Sequence[str]) -> dict[str, RunConfig]:
    """Return a run of each size with its most even mixture and the first seed."""
    by_size: dict[str, list[RunConfig]] = {}
    runs = {run.name: run for run in run_configs(study, data) if run.branch is None}
    for size in study.section("sweep", SweepConfig).sizes:
        if of_size := [run for run in runs.values() if run_name(size, run.mixture, run.seed) == run.name]:
            by_size[size] = of_size
    if unknown := [size for size in sizes if size not in by_size]:
        raise RunError(
            f"{study.path}: [sweep] trains no size {unknown[0]!r}; its sizes are {', '.join(by_size)}"
        )
    # `max` returns the first of equally even mixtures in the order of the study.
    return {size: max(by_size[size], key=lambda run: _evenness(run.mixture)) for size in sizes or by_size}


def _evenness(mixture: Mapping[str, float]) -> float:
    """Return the entropy of a mixture, in nats."""
    return round(-sum(weight * log(weight) for weight in mixture.values() if weight > 0), 9)


class _Search:
    """Optuna's search for the rate of one size, stored in its journal.

    Args:
        size: Name of the size.
        base: A run of the size.
        folder: Folder of the journal.
    """

    def __init__(self, size: str, base: RunConfig, folder: Path) -> None:
        self.size, self.base = size, base
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        same = replace(base, train=replace(base.train, learning_rate=1.0))  # independent of the current rate
        self.study = optuna.create_study(
            study_name=f"{base.name} {config_fingerprint(same)} {open_prepared(base.data).fingerprint}",
            storage=JournalStorage(JournalFileBackend(str(folder / STORAGE))),
            pruner=SuccessiveHalvingPruner(min_resource=1, reduction_factor=2),
            load_if_exists=True,
        )
        before = self.study.get_trials()
        self.study.sampler = TPESampler(n_startup_trials=len(FIRST_FACTORS), seed=len(before))
        self.rate: float = self.study.user_attrs.get(RATE, base.train.learning_rate)
        self.study.set_user_attr(RATE, self.rate)
        for factor in FIRST_FACTORS if not before else ():
            self.study.enqueue_trial({RATE: factor * self.rate})
        for trial in before:
            if trial.state == TrialState.RUNNING:  # interrupted
                self.study.tell(trial.number, state=TrialState.FAIL)
                self.study.enqueue_trial(trial.params)

    def ask(self, number: int, trials: int) -> list[optuna.Trial]:
        """Return up to `number` new trials, up to `trials` in total."""
        done = self.study.get_trials(states=[TrialState.COMPLETE, TrialState.PRUNED])
        asked = [self.study.ask() for _ in range(min(number, trials - len(done)))]
        for trial in asked:
            trial.suggest_float(RATE, self.rate / LARGEST_FACTOR, self.rate * LARGEST_FACTOR, log=True)
        return asked

    def run(self, trial: optuna.Trial, length: float) -> RunConfig:
        """Return the run of a trial, shortened to a fraction of its length."""
        train = self.base.train
        steps, rate = max(1, round(length * train.steps)), float(f"{trial.params[RATE]:.3g}")
        cooldown = round(train.cooldown_steps * steps / train.steps)
        shortened = replace(
            train,
            learning_rate=rate,
            steps=steps,
            warmup_steps=min(train.warmup_steps, steps // 4, steps - cooldown),
            cooldown_steps=cooldown,
            horizons=(),
            eval_every=0,
            test_every=0,
            keep_checkpoints=1,
            keep_best=0,
            early_stopping=0,
            trackers=(),
        )
        return replace(self.base, name=f"{self.size}_rate{rate:g}_steps{steps}", train=shortened)

    def promotes(self, trial: optuna.Trial, loss: float, rung: int) -> bool:
        """Report the loss of a trial's run; return whether it continues at the next length."""
        if loss == inf:
            self.study.tell(trial, state=TrialState.PRUNED)
            return False
        trial.report(loss, rung)
        if rung == len(LENGTHS):
            self.study.tell(trial, loss)
        elif trial.should_prune():
            self.study.tell(trial, state=TrialState.PRUNED)
        else:
            return True
        return False

    def best_rate(self) -> float:
        """Return the rate with the lowest loss."""
        try:
            return float(f"{self.study.best_params[RATE]:.3g}")
        except ValueError:
            raise RunError(f"{self.size}: every trial failed; lower its `learning_rate`") from None


def _loss(outcome: Outcome, folder: Path) -> float:
    """Return the mean dev loss of the trained tasks at the end of a run; infinity if it failed."""
    if outcome.status != "finished":
        return inf
    evals = [each for each in read_evals(folder / outcome.run.name) if each.testset == "dev"]
    last = max(each.step for each in evals)
    losses = {each.task: each.value for each in evals if each.step == last}
    return mean_dev_loss(losses, outcome.run.mixture)
