"""The test sets of prepared data, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mnmt_data.prepared import Prepared
from mnmt_eval.errors import EvalError
from mnmt_eval.language_pairs import languages_of
from mnmt_eval.text_lines import digest


@dataclass(frozen=True, kw_only=True)
class ParallelText:
    """Source sentences of one task and test set with their references."""

    testset: str
    task: str
    src: Sequence[str]
    references: Sequence[str]

    @property
    def target(self) -> str:
        """The target language."""
        return languages_of(self.task)[1]

    @property
    def digest(self) -> str:
        """A checksum of sources and references."""
        return digest(self.src, self.references)


def read_testsets(
    data: Prepared, *, testsets: Sequence[str], max_sentences: int | None
) -> list[ParallelText]:
    """The text of all tasks and test sets.

    Args:
        data: Where they are.
        testsets: Names of test sets; all of them if none is named.
        max_sentences: Sentences of each, from its start; all by default.

    Raises:
        EvalError: If a test set is named that no task has.
        DataError: If text is missing or broken, or its two sides differ in length.
    """
    existing = [(task, testset) for task in data.evaluated for testset in data.testsets(task)]
    names = dict.fromkeys(testset for _, testset in existing)
    for testset in testsets:
        if testset not in names:
            choices = ", ".join(names) or "none"
            raise EvalError(f"{data.folder}: has no test set {testset!r}; its test sets are {choices}.")
    wanted = testsets or list(names)
    found = []
    for task, testset in existing:
        if testset in wanted:
            src, references = (side[:max_sentences] for side in data.text(testset, task))
            found.append(ParallelText(testset=testset, task=task, src=src, references=references))
    return found
