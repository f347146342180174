"""`mnmt-model tune`: the learning rate of each size of a study."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from mnmt_data.cli.console import Jobs
from mnmt_data.study import read_study
from mnmt_model.errors import RunError

if TYPE_CHECKING:
    from mnmt_model.runs.run_config import RunConfig
    from mnmt_model.sweep.run_queue import Outcome


def tune(
    study: Path,
    *,
    sizes: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    trials: Annotated[int, Parameter(validator=validators.Number(gte=1, lte=1000))] = 8,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
    jobs: Jobs = None,
) -> None:
    """Find the peak learning rate of each size, and write it into the study.

    Rates around the current one are tried in runs of a quarter of the steps, with a cool-down, and the better
    half of them in runs of half the steps. Trials are recorded like runs, in `tune` beside `runs`, together
    with Optuna's journal optuna.jsonl, and are not trained again.

    Args:
        study: The study's TOML file.
        sizes: Sizes to tune; all that the study trains by default.
        trials: Rates to try for each size.
        out: Folder of the study's results; `results/NAME` by default.
        jobs: Trials to train at a time; by default one a GPU, or one a core without GPUs.
    """
    from mnmt_model.cli.progress import SweepProgress
    from mnmt_model.sweep import default_jobs, train_runs

    try:
        from mnmt_model.sweep.tuning import tune_study, write_rates
    except ImportError:
        raise RunError("tune needs `pip install './packages/mnmt-model[tune]'`") from None
    jobs = default_jobs() if jobs is None else jobs
    file = read_study(study)
    results = out or Path("results") / file.name

    def train(runs: Sequence[RunConfig]) -> Sequence[Outcome]:
        with closing(SweepProgress(runs, results / "tune", jobs=jobs)) as progress:
            return train_runs(runs, results / "tune", jobs=jobs, watcher=progress)

    rates = tune_study(file, results / "data", results / "tune", train, sizes=sizes, trials=trials, jobs=jobs)
    write_rates(study, rates)
    for size, rate in rates.items():
        print(f"{size}: learning_rate = {rate:g}")
    print(f"written: {study}")
