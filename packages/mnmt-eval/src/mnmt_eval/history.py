"""The measurements that a run record holds."""

from __future__ import annotations

from collections.abc import Iterable

from mnmt_model.run_record import Eval


class EvalHistory:
    """Measurements as they were made; of those that differ in nothing but signature, the last one counts."""

    def __init__(self, evals: Iterable[Eval]) -> None:
        self._by_signature: dict[tuple[int, str, str, str, str], Eval] = {}
        self._counting: dict[tuple[int, str, str, str], Eval] = {}
        for made in evals:
            self._by_signature[made.step, made.task, made.testset, made.metric, made.signature] = made
            self._counting[made.step, made.task, made.testset, made.metric] = made

    def find(self, *, step: int, task: str, testset: str, metric: str, signature: str) -> Eval | None:
        """The measurement made with this signature, if there is one."""
        return self._by_signature.get((step, task, testset, metric, signature))

    def counts(self, made: Eval) -> bool:
        """Whether `made` is in the history and no later one replaces it."""
        return self._counting.get((made.step, made.task, made.testset, made.metric)) == made
