"""Trackers of experiments: TensorBoard, Weights & Biases and MLflow, with the numbers of the run record.

Each is its own client, which finds its server by its own settings and environment (`WANDB_MODE=offline`,
`MLFLOW_TRACKING_URI`). Tags are `train/KEY` for lines of metrics.jsonl, and `METRIC/TESTSET/TASK` for
measurements.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from operator import methodcaller
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from mnmt_model.errors import RunError, one_line
from mnmt_model.runs.run_record import Eval, RunRecord, read_run
from mnmt_model.training.balance import LOADS
from mnmt_model.training.watcher import Watcher

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Tracker(ABC):
    """Sends the numbers of a run to a tracker of experiments.

    Args:
        folder: The run record, with run.json.
        step: The step from which training continues.
    """

    name: ClassVar[str]
    """The tracker in `trackers`, and the extra that installs its client."""

    @staticmethod
    @abstractmethod
    def check() -> None:
        """Raise an error if the package, the server or the key to it is missing."""

    @abstractmethod
    def __init__(self, folder: Path, *, step: int) -> None: ...

    @abstractmethod
    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Send numbers of a step, {tag: value}."""

    @abstractmethod
    def close(self) -> None:
        """Wait until all is sent or stored."""


class TensorBoard(Tracker):
    """Writes event files into `tensorboard/` of the run record.

    TensorBoard drops steps after `step` that an earlier process wrote.
    """

    name = "tensorboard"

    @staticmethod
    def check() -> None:
        """Import the package."""
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401

    def __init__(self, folder: Path, *, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(folder / self.name, purge_step=step + 1)

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Write the numbers, and flush them to the file."""
        for tag, value in scalars.items():
            self._writer.add_scalar(tag, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


class WandB(Tracker):
    """Sends a run to Weights & Biases: its group is the study.

    The project is `WANDB_PROJECT`, by default `mnmt`. A resumed run continues the same one there.
    """

    name = "wandb"

    @staticmethod
    def check() -> None:
        """Show the server the key, unless W&B is offline."""
        import wandb

        try:
            if wandb.setup(wandb.Settings(silent=True)).settings.mode == "online":
                wandb.login(verify=True)
        finally:
            wandb.teardown()  # or processes of the sweep take its service for theirs

    def __init__(self, folder: Path, *, step: int) -> None:
        import wandb

        record, settings = read_run(folder), wandb.setup().settings
        self._run: Any = wandb.init(
            project=settings.project or "mnmt",
            group=record.study,
            name=record.run,
            id=_identity(record),
            resume=None if settings.mode == "offline" else "allow",
            config=_settings(record),
            dir=folder,
            settings=wandb.Settings(silent=True, console="off"),
        )
        # Steps between a checkpoint and an interruption come twice, so W&B's own counter does not do.
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Queue the numbers; W&B's process sends them."""
        self._run.log({"step": step, **scalars})

    def close(self) -> None:
        """Wait until all is sent or stored; mark the run as failed after an error."""
        self._run.finish(exit_code=1 if sys.exc_info()[0] else 0)


class MLflow(Tracker):
    """Sends a run to MLflow: its experiment is the study. A resumed run continues the same one there."""

    name = "mlflow"

    @staticmethod
    def check() -> None:
        """Ask the server for an experiment, once again if it fails, not for minutes."""
        import mlflow
        from mlflow import environment_variables

        retries: Any = environment_variables.MLFLOW_HTTP_REQUEST_MAX_RETRIES
        default = retries.get()
        retries.set(1)
        try:
            mlflow.MlflowClient().search_experiments(max_results=1)
        finally:
            retries.set(default)

    def __init__(self, folder: Path, *, step: int) -> None:
        import mlflow
        from mlflow.entities import Metric

        record = read_run(folder)
        self._client, self._metric = mlflow.MlflowClient(), Metric
        self._run = self._find(record) or self._create(record)

    def _experiment(self, study: str) -> str:
        experiment = self._client.get_experiment_by_name(study)
        return str(experiment.experiment_id if experiment else self._client.create_experiment(study))

    def _find(self, record: RunRecord) -> str | None:
        same = f"tags.`mnmt.run` = '{_identity(record)}'"
        runs = self._client.search_runs([self._experiment(record.study)], same, max_results=1)
        return runs[0].info.run_id if runs else None

    def _create(self, record: RunRecord) -> str:
        tags = {"mnmt.run": _identity(record)}
        run = self._client.create_run(self._experiment(record.study), run_name=record.run, tags=tags)
        for key, value in _settings(record).items():
            self._client.log_param(run.info.run_id, key, json.dumps(value))
        return str(run.info.run_id)

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Queue the numbers; a thread of MLflow's sends them."""
        now = round(1000 * time.time())
        metrics = [self._metric(tag, value, now, step) for tag, value in scalars.items()]
        self._client.log_batch(self._run, metrics=metrics, synchronous=False)

    def close(self) -> None:
        """Wait until all is sent; mark the run as failed after an error."""
        import mlflow

        mlflow.flush_async_logging()
        self._client.set_terminated(self._run, "FAILED" if sys.exc_info()[0] else "FINISHED")


TRACKERS: Mapping[str, type[Tracker]] = {each.name: each for each in (TensorBoard, WandB, MLflow)}


class Trackers(Watcher):
    """Sends what a run measures to its trackers, without the one that fails, after a warning.

    Args:
        names: Keys of `TRACKERS`.
        folder: The run record, with run.json.
        step: The step from which training continues.

    Raises:
        RunError: If a tracker's package is not installed, or it cannot be reached.
    """

    def __init__(self, names: Iterable[str], folder: Path, *, step: int) -> None:
        self._trackers = [_start(name, partial(TRACKERS[name], folder, step=step)) for name in names]

    def log(self, line: Mapping[str, Any]) -> None:
        """Send a line of metrics.jsonl, without the counts of experts by task, which are too many."""
        numbers = {key: value for key, value in line.items() if key not in (LOADS, "step")}
        scalars = {f"train/{key}": value for key, value in _scalars(numbers)}
        self._each(methodcaller("write", line["step"], scalars))

    def evaluate(self, evals: Sequence[Eval]) -> None:
        """Send measurements."""
        for each in evals:
            tag = f"{each.metric}/{each.testset}/{each.task}"
            self._each(methodcaller("write", each.step, {tag: each.value}))

    def close(self) -> None:
        """Close the trackers."""
        self._each(methodcaller("close"))

    def _each(self, act: Callable[[Tracker], None]) -> None:
        for tracker in list(self._trackers):
            try:
                act(tracker)
            except Exception as error:
                _log.warning("%s stopped recording, training goes on: %s", tracker.name, one_line(error))
                self._trackers.remove(tracker)


def check_trackers(names: Iterable[str]) -> None:
    """Check that trackers can be reached, before the first run starts.

    Raises:
        RunError: If a tracker's package is not installed, or it cannot be reached.
    """
    for name in names:
        _start(name, TRACKERS[name].check)


def _start(name: str, start: Callable[[], T]) -> T:
    try:
        return start()
    except ImportError:
        raise RunError(f'trackers = ["{name}"] needs `pip install "./packages/mnmt-model[{name}]"`') from None
    except Exception as error:
        raise RunError(f"{name} cannot record the run: {one_line(error)}") from error


def _settings(record: RunRecord) -> dict[str, Any]:
    """Return what a tracker shows beside the numbers."""
    fields = ("study", "role", "architecture", "size", "num_params", "vocab_size", "mixture", "seed")
    return {**{key: getattr(record, key) for key in fields}, **record.config}


def _identity(record: RunRecord) -> str:
    """Return a name of the run that stays the same when it resumes, and no other run has."""
    start = f"{record.study}/{record.run}/{record.started}/{record.config_fingerprint}"
    return sha256(start.encode()).hexdigest()[:16]


def _scalars(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a line without null; those in lists and mappings as `KEY/INNER`."""
    for key, value in values.items():
        if isinstance(value, list):
            value = {str(index): inner for index, inner in enumerate(value)}
        if isinstance(value, Mapping):
            yield from ((f"{key}/{inner}", number) for inner, number in _scalars(value))
        elif value is not None:
            yield key, value
