"""The search for the learning rate of each size, by Optuna, in short runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

from mnmt_data.store import atomic_file, open_prepared
from mnmt_data.study import StudyFile
from mnmt_model.errors import RunError
from mnmt_model.runs.losses import mean_dev_loss
from mnmt_model.runs.run_config import RunConfig, config_fingerprint
from mnmt_model.runs.run_record import read_evals
from mnmt_model.sweep.run_queue import Outcome
from mnmt_model.sweep.sweep_config import SweepConfig, run_configs, run_name

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import Trial

FIRST_FACTORS = (1.0, 0.5, 2.0, 0.25, 4.0)
"""The first rates to try, times the present one; Optuna chooses the others."""
LARGEST_FACTOR = 8.0
LENGTHS = (0.25, 0.5)
"""Lengths of trials as fractions of the study's runs; the better half of a length is tried at the next."""
RATE = "learning_rate"
STORAGE = "optuna.jsonl"
"""Optuna's journal, in the folder of the trials."""

TrainRuns = Callable[[Sequence[RunConfig]], Sequence[Outcome]]
"""Trains runs, and returns how each ended."""


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
    """Return {size: learning rate} of the lowest dev loss, given a study and its prepared data.

    A trial is a run of the study's most even mixture with its schedule, shortened: the cool-down has the same
    share of the steps, since without one high rates look too bad. What was tried before is not trained again.

    Args:
        study: The study.
        data: Folder of its prepared data.
        folder: Folder of the trials' records, and of Optuna's journal.
        train: Trains runs in folders of their names in `folder`.
        sizes: Names of the sizes; all that the study trains by default.
        trials: Rates to try for each size.
        jobs: Runs that train at a time.

    Raises:
        RunError: If Optuna is not installed, the study has no such size, or every trial of a size fails.
    """
    bases = _base_runs(study, data, sizes)
    folder.mkdir(parents=True, exist_ok=True)
    searches = {size: _open_search(folder, base) for size, base in bases.items()}
    while asked := list(_ask(searches, trials, -(-jobs // len(searches)))):
        for rung, length in enumerate(LENGTHS, start=1):
            runs = [_trial_run(bases[size], size, trial.params[RATE], length) for size, trial in asked]
            outcomes = {each.run.name: each for each in train(list({run.name: run for run in runs}.values()))}
            losses = [_loss(outcomes[run.name], folder) for run in runs]
            # The best comes first, which the others must then beat to go on.
            order = sorted(range(len(asked)), key=losses.__getitem__)
            asked = [asked[i] for i in order if _goes_on(searches, *asked[i], losses[i], rung)]
    return {size: _best_rate(size, search) for size, search in searches.items()}


def write_rates(path: Path, rates: Mapping[str, float]) -> None:
    """Write {size: learning rate} into a study's file, whose comments and layout stay."""
    import tomlkit

    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    for size, rate in rates.items():
        document["sweep"]["sizes"][size][RATE] = rate
    with atomic_file(path) as file:
        file.write(tomlkit.dumps(document).encode("utf-8"))


def _base_runs(study: StudyFile, data: Path, sizes: Sequence[str]) -> dict[str, RunConfig]:
    """Return a run of each size, with the most even of its mixtures and the first seed."""
    by_size: dict[str, list[RunConfig]] = {}
    runs = {run.name: run for run in run_configs(study, data) if run.branch is None}
    for size in study.section("sweep", SweepConfig).sizes:
        if of_size := [run for run in runs.values() if run_name(size, run.mixture, run.seed) == run.name]:
            by_size[size] = of_size
    if unknown := [size for size in sizes if size not in by_size]:
        raise RunError(
            f"{study.path}: [sweep] trains no size {unknown[0]!r}; its sizes are {', '.join(by_size)}"
        )
    # Of equally even mixtures the first, in the order of the study.
    return {size: max(by_size[size], key=lambda run: _evenness(run.mixture)) for size in sizes or by_size}


def _evenness(mixture: Mapping[str, float]) -> float:
    """Return the entropy of a mixture, in nats."""
    return round(-sum(weight * log(weight) for weight in mixture.values() if weight > 0), 9)


def _open_search(folder: Path, base: RunConfig) -> Study:
    """Return Optuna's study of a run's rate, from the journal; trials that were cut off are asked again."""
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend, JournalStorage
    except ImportError:
        raise RunError("tune needs `pip install './packages/mnmt-model[tune]'`") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rate = base.train.learning_rate
    same = replace(base, train=replace(base.train, learning_rate=1.0))  # The rate itself will change.
    search = optuna.create_study(
        study_name=f"{base.name} {config_fingerprint(same)} {open_prepared(base.data).fingerprint}",
        storage=JournalStorage(JournalFileBackend(str(folder / STORAGE))),
        pruner=optuna.pruners.SuccessiveHalvingPruner(reduction_factor=2),
        load_if_exists=True,
    )
    before = search.get_trials()
    search.sampler = optuna.samplers.TPESampler(n_startup_trials=len(FIRST_FACTORS), seed=len(before))
    for trial in before:
        if trial.state == optuna.trial.TrialState.RUNNING:
            search.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            search.enqueue_trial(trial.params)
    if not before:
        for factor in FIRST_FACTORS:
            search.enqueue_trial({RATE: factor * rate})
    search.set_user_attr(RATE, search.user_attrs.get(RATE, rate))
    return search


def _ask(searches: Mapping[str, Study], trials: int, number: int) -> Iterator[tuple[str, Trial]]:
    """Yield at most `number` new trials of each size, and its name."""
    from optuna.trial import TrialState

    for size, search in searches.items():
        done = search.get_trials(states=[TrialState.COMPLETE, TrialState.PRUNED])
        for _ in range(min(number, trials - len(done))):
            trial, rate = search.ask(), search.user_attrs[RATE]
            trial.suggest_float(RATE, rate / LARGEST_FACTOR, rate * LARGEST_FACTOR, log=True)
            yield size, trial


def _goes_on(searches: Mapping[str, Study], size: str, trial: Trial, loss: float, rung: int) -> bool:
    """Report the loss of a trial's run to Optuna; return whether a longer run of it is due."""
    from optuna.trial import TrialState

    if loss < float("inf"):
        trial.report(loss, rung)
        if rung == len(LENGTHS):
            searches[size].tell(trial, loss)
            return False
        if not trial.should_prune():
            return True
    searches[size].tell(trial, state=TrialState.PRUNED)
    return False


def _trial_run(base: RunConfig, size: str, rate: float, length: float) -> RunConfig:
    """Return a run of a size with another rate, shortened."""
    steps, rate = max(1, round(length * base.train.steps)), float(f"{rate:.3g}")
    train = replace(
        base.train,
        learning_rate=rate,
        steps=steps,
        warmup_steps=min(base.train.warmup_steps, steps // 4),
        cooldown_steps=round(base.train.cooldown_steps * steps / base.train.steps),
        horizons=(),
        eval_every=0,
        test_every=0,
        keep_checkpoints=1,
        keep_best=0,
        early_stopping=0,
        tensorboard=False,
    )
    return replace(base, name=f"{size}_rate{rate:g}_steps{steps}", train=train)


def _loss(outcome: Outcome, folder: Path) -> float:
    """Return the mean dev loss of the trained tasks at the end of a run; infinity if it failed."""
    if outcome.status != "finished":
        return float("inf")
    evals = [each for each in read_evals(folder / outcome.run.name) if each.testset == "dev"]
    last = max(each.step for each in evals)
    losses = {each.task: each.value for each in evals if each.step == last}
    return mean_dev_loss(losses, outcome.run.mixture)


def _best_rate(size: str, search: Study) -> float:
    try:
        return float(f"{search.best_params[RATE]:.3g}")
    except ValueError:
        raise RunError(f"{size}: every trial failed; lower its `learning_rate`, or see the runs") from None
