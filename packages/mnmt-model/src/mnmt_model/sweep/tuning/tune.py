"""Tuning a study: the trials of all its sizes, rung by rung, and the settings that follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from mnmt_data.study import StudyFile
from mnmt_model.errors import RunError
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.sweep.run_queue import Outcome
from mnmt_model.sweep.tuning.halving import Candidate, Halving, SearchConfig
from mnmt_model.sweep.tuning.study_settings import Setting
from mnmt_model.sweep.tuning.trials import Trial, base_runs, read_trial, rounded, trial_run, with_candidate

LONGEST = 0.5
"""Length of the longest trials, of that of the study's runs."""

BATCH_KEYS = ("batch_tokens", "steps", "horizons", "warmup_steps", "cooldown_steps")
"""Settings that another batch brings with it."""

TrainRuns = Callable[[Sequence[RunConfig]], Sequence[Outcome]]
"""Trains runs, several at a time, and returns how each ended."""


@dataclass(frozen=True, kw_only=True)
class SizeResult:
    """What a size should be trained with."""

    size: str
    settings: Mapping[str, Setting]
    """{key of [train]: value}: the learning rate, and what goes with another batch."""
    loss: float | None
    """Mean dev loss of the best trial, nats per token; None where the rate follows from another size's."""
    trials: tuple[Trial, ...]

    @property
    def learning_rate(self) -> float:
        """The peak learning rate."""
        rate = self.settings["learning_rate"]
        assert isinstance(rate, float)
        return rate


@dataclass
class _Search:
    """The search for one size."""

    base: RunConfig
    steps: int
    """Steps of the longest trials."""
    halving: Halving
    trials: list[Trial] = field(default_factory=list)


def tune_study(
    study: StudyFile,
    data: Path,
    folder: Path,
    train: TrainRuns,
    *,
    config: SearchConfig = SearchConfig(),  # noqa: B008 - it is frozen
    sizes: Sequence[str] = (),
    steps: int | None = None,
    transfer: bool = False,
    on_trials: Callable[[Sequence[RunConfig]], None] = lambda runs: None,
) -> list[SizeResult]:
    """Find the learning rate of each size, and its batch if asked.

    Trials are runs of the study's most even mixture with its schedule, shortened: the cool-down has the same
    share of the steps. Those of all sizes are trained together.

    Args:
        study: The study.
        data: Folder of its prepared data.
        folder: Folder of the trials' records.
        train: Trains runs in folders of their names in `folder`; what is finished there is not trained again.
        config: How thorough the search is.
        sizes: Names of the sizes; all that the study trains by default.
        steps: Steps of the longest trials; by default half of those of the study's runs.
        transfer: Tune the narrowest size alone; the rates of the others follow from it, in proportion to
            1 / `d_model`, as for the matrices of μP under Adam (Yang et al. 2022).
        on_trials: Called with the trials that are trained next.

    Raises:
        RunError: If the study has no such size, a trial would have no step, every trial of a size fails, or
            rates should follow from another size's under another optimiser than AdamW.
    """
    bases = base_runs(study, data, sizes)
    searches = {
        size: _Search(base=base, steps=steps or round(LONGEST * base.train.steps), halving=Halving(config))
        for size, base in (_narrowest(bases) if transfer else bases).items()
    }
    while trials := [trial for size, search in searches.items() for trial in _next(size, search, config)]:
        runs = [run for _, _, run in trials]
        on_trials(runs)
        outcomes = {outcome.run.name: outcome for outcome in train(runs)}
        for search, candidate, run in trials:
            trial = read_trial(run, search.halving.rung, outcomes[run.name], folder)
            search.trials.append(trial)
            search.halving.tell(candidate, inf if trial.loss is None else trial.loss)
    results = {size: _result(size, search) for size, search in searches.items()}
    if transfer:
        results = _transferred(bases, *results.values())
    return list(results.values())


def _next(size: str, search: _Search, config: SearchConfig) -> list[tuple[_Search, Candidate, RunConfig]]:
    """Return the trials that a size needs next, none when its search is over."""
    candidates = search.halving.ask()
    steps = search.steps // 2 ** (config.rungs - 1 - search.halving.rung)
    if not steps:
        raise RunError(
            f"{size}: {config.rungs} rungs need trials of at least {2 ** (config.rungs - 1)} steps"
        )
    return [(search, candidate, trial_run(search.base, size, candidate, steps)) for candidate in candidates]


def _result(size: str, search: _Search) -> SizeResult:
    best = search.halving.best
    loss = search.halving.losses[-1][best]
    if loss == inf:
        raise RunError(
            f"{size}: every trial failed, such as {search.trials[0].run}: {search.trials[0].error}"
        )
    train = with_candidate(search.base.train, best)
    keys = ("learning_rate", *(BATCH_KEYS if best.batch else ()))
    return SizeResult(
        size=size,
        settings={key: _setting(getattr(train, key)) for key in keys if getattr(train, key) != ()},
        loss=loss,
        trials=tuple(search.trials),
    )


def _narrowest(bases: Mapping[str, RunConfig]) -> dict[str, RunConfig]:
    """Return the size of the smallest `d_model` alone.

    Raises:
        RunError: If a size is not trained with AdamW.
    """
    for size, base in bases.items():
        if base.train.optimizer != "adamw":
            raise RunError(
                f"{size}: rates in proportion to 1 / `d_model` suit `adamw`, but `optimizer` is "
                f"`{base.train.optimizer}`; tune every size"
            )
    size = min(bases, key=lambda size: bases[size].model.d_model)
    return {size: bases[size]}


def _transferred(bases: Mapping[str, RunConfig], tuned: SizeResult) -> dict[str, SizeResult]:
    """Return the results of all sizes, given that of the narrowest."""
    width = bases[tuned.size].model.d_model
    results = {}
    for size, base in bases.items():
        rate = rounded(tuned.learning_rate * width / base.model.d_model)
        settings = {**tuned.settings, "learning_rate": rate}
        results[size] = SizeResult(size=size, settings=settings, loss=None, trials=())
    return results | {tuned.size: tuned}


def _setting(value: float | tuple[int, ...]) -> Setting:
    return list(value) if isinstance(value, tuple) else value
