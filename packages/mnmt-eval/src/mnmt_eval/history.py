"""Which of the measurements in a run record count."""

from __future__ import annotations

from collections.abc import Iterable

from mnmt_model.runs.run_record import Eval


def counting(evals: Iterable[Eval]) -> list[Eval]:
    """Those that no later one of the same step, task, test set and metric replaces.

    Args:
        evals: In the order in which they were made.
    """
    return list({(made.step, made.task, made.testset, made.metric): made for made in evals}.values())
