"""The quality and cost that a run's record states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mnmt_model.runs import Eval, open_data, read_evals, read_run

LANGUAGE = "language"


@dataclass(frozen=True, kw_only=True)
class RunScores:
    """The latest measurements of a run's newest model, and the data for their analysis."""

    name: str
    mixture: Mapping[str, float]
    """{task: weight} of the tasks that it was trained on."""
    evals: tuple[Eval, ...]
    """The last measurement of each task, test set and metric."""
    training_pairs: Mapping[str, int]
    """{task: pairs in the data} of the tasks that it was trained on."""
    zero_shot: tuple[str, ...]
    """Tasks with test sets that it was not trained on."""

    def values(self, testset: str, metric: str) -> dict[str, float]:
        """Return {task: value} of a metric on a test set."""
        return {each.task: each.value for each in self._evals(testset, metric)}

    def signatures(self, testset: str, metric: str) -> dict[str, str]:
        """Return {task: signature of the value}."""
        return {each.task: each.signature for each in self._evals(testset, metric)}

    @property
    def flops(self) -> float:
        """The FLOPs of training up to the last measured step."""
        return float(max((each.flops for each in self.evals), default=0))

    def _evals(self, testset: str, metric: str) -> list[Eval]:
        return [each for each in self.evals if (each.testset, each.metric) == (testset, metric)]


def read_run_scores(folder: Path, *, name: str | None = None) -> RunScores:
    """Read a run's record, and the numbers of training pairs from its data.

    Args:
        folder: The run's folder.
        name: The run's name; by default the one in its record.

    Raises:
        RunError: If the record cannot be read.
        DataError: If the data cannot be read.
    """
    record = read_run(folder)
    data = open_data(folder)
    mixture = {task: weight for task, weight in record.mixture.items() if weight > 0}
    counts = data.train_counts
    return RunScores(
        name=name or record.run,
        mixture=mixture,
        evals=_of_newest_model(read_evals(folder)),
        training_pairs={task: counts[task].pairs for task in mixture if task in counts},
        zero_shot=tuple(task for task in data.evaluated if task not in mixture),
    )


def latest_evals(evals: Iterable[Eval]) -> list[Eval]:
    """Return the last measurement of each step, task, test set and metric.

    Args:
        evals: The measurements, in the order in which they were made.
    """
    return list({(each.step, each.task, each.testset, each.metric): each for each in evals}.values())


def _of_newest_model(evals: list[Eval]) -> tuple[Eval, ...]:
    newest = max((each.step for each in evals), default=0)
    return tuple(each for each in latest_evals(evals) if each.step == newest)
