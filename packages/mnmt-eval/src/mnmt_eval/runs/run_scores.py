"""What a run's record says of its quality and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mnmt_eval.errors import EvalError
from mnmt_model.runs import Eval, open_data, read_evals, read_run

LOSS = "loss"
LANGUAGE = "language"


@dataclass(frozen=True, kw_only=True)
class RunScores:
    """The measurements of a run's newest model that count: the last of each task, test set and metric."""

    name: str
    mixture: Mapping[str, float]
    evals: tuple[Eval, ...]
    wall_seconds: float | None

    training_pairs: Mapping[str, int]
    """{task: pairs in the data} of the tasks it was trained on."""

    zero_shot: tuple[str, ...]
    """Tasks with test sets that it was not trained on."""

    def values(self, testset: str, metric: str) -> dict[str, float]:
        """{task: value} of a metric on a test set."""
        return {
            made.task: made.value for made in self.evals if (made.testset, made.metric) == (testset, metric)
        }

    def signatures(self, testset: str, metric: str) -> dict[str, str]:
        """{task: how `values` were measured}."""
        wanted = (testset, metric)
        return {made.task: made.signature for made in self.evals if (made.testset, made.metric) == wanted}

    def cost(self, unit: str) -> float:
        """Training FLOPs (`flops`), or seconds of training (`seconds`).

        Raises:
            EvalError: If the record does not say.
        """
        if unit == "flops":
            return float(max((made.flops for made in self.evals), default=0))
        if self.wall_seconds is None:
            raise EvalError(f"{self.name}: its record does not say how long training took.")
        return self.wall_seconds


def read_run_scores(folder: Path, *, name: str | None = None) -> RunScores:
    """Read a run's record, and the numbers of training pairs from its data.

    Args:
        folder: The run's.
        name: What to call it; by default as its record does.

    Raises:
        RunError, DataError: If record or data cannot be read.
    """
    record = read_run(folder)
    data = open_data(folder)
    mixture = {task: weight for task, weight in record.mixture.items() if weight > 0}
    counts = data.train_counts
    return RunScores(
        name=name or record.run,
        mixture=mixture,
        evals=_of_newest_model(read_evals(folder)),
        wall_seconds=record.wall_seconds,
        training_pairs={task: counts[task].pairs for task in mixture if task in counts},
        zero_shot=tuple(task for task in data.evaluated if task not in mixture),
    )


def _of_newest_model(evals: list[Eval]) -> tuple[Eval, ...]:
    newest = max((made.step for made in evals), default=0)
    return tuple(made for made in counting(evals) if made.step == newest)


def counting(evals: Iterable[Eval]) -> list[Eval]:
    """Those that no later one of the same step, task, test set and metric replaces.

    Args:
        evals: In the order in which they were made.
    """
    return list({(made.step, made.task, made.testset, made.metric): made for made in evals}.values())
