"""Source and reference text of a test set: in prepared data, or in plain files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mnmt_data.readers import check_code
from mnmt_eval.errors import EvalError
from mnmt_eval.language import languages_of
from mnmt_eval.metrics.protocol import Floats
from mnmt_eval.text import checksum, read_lines, read_text

if TYPE_CHECKING:
    from mnmt_data.store import PreparedData


@dataclass(frozen=True, kw_only=True)
class ReferenceText:
    """References of one task and test set, with sources if they are known."""

    testset: str
    task: str
    """The language pair; empty if unknown."""
    references: Sequence[Sequence[str]]
    """The sentences of the first reference, those of the second, …; none of a reference-free comparison."""
    reference_names: Sequence[str] = ()
    """The references' files, with columns; empty for those of prepared data."""
    tasks: Sequence[str] = ()
    """All tasks of the study, in whose languages translations may be; empty if unknown."""
    src: Sequence[str] = ()
    """Source sentences; empty if unknown."""
    origins: Sequence[str] | None = None
    """The language that each pair was written in; None if unknown."""
    documents: Sequence[str] = ()
    """The document of each sentence; empty if sentences are resampled one by one."""
    lines: int = 0
    """The number of sentences, where neither references nor sources tell it."""

    weights: Floats | None = None
    """(sentences,) of pairs that stand for a distribution, as in an exact test set; None if each counts 1."""

    def __len__(self) -> int:
        return len(self.references[0] if self.references else self.src) or self.lines

    @property
    def name(self) -> str:
        """Test set and language pair, without unknown ones."""
        return f"{self.testset} {self.task}".strip()

    @property
    def target(self) -> str:
        """The target language."""
        return languages_of(self.task)[1]

    @property
    def checksum(self) -> str:
        """The checksum of sources, references and weights."""
        weights = [] if self.weights is None else [[str(weight) for weight in self.weights.tolist()]]
        return checksum(self.src, *self.references, *weights)

    def weigh(self, statistics: Floats) -> Floats:
        """Return a metric's statistics of each sentence, (sentences, k), times its weight over the mean one.

        Metrics are functions of sums, so the value of the sum is that of the distribution.
        """
        if self.weights is None:
            return statistics
        weights: Floats = self.weights / self.weights.mean()
        return statistics * weights[:, None]

    def head(self, count: int | None) -> ReferenceText:
        """Return the first `count` sentences; all of them if it is None."""
        return replace(
            self,
            references=[lines[:count] for lines in self.references],
            src=self.src[:count],
            documents=self.documents[:count],
            origins=None if self.origins is None else self.origins[:count],
            weights=None if self.weights is None else self.weights[:count],
        )


def read_testsets(
    data: PreparedData, *, testsets: Sequence[str], max_sentences: int | None
) -> list[ReferenceText]:
    """Read the test sets of all tasks.

    Args:
        data: The prepared data.
        testsets: Names of test sets; all of them by default.
        max_sentences: The number of sentences of each, from its start; all by default.

    Raises:
        EvalError: If no task has a named test set.
        DataError: If text is missing or broken, or its two sides differ in length.
    """
    available = [(task, testset) for task in data.evaluated for testset in data.testsets(task)]
    for testset in testsets:
        _tasks_with(data, testset)
    return [
        _read_prepared(data, testset, task).head(max_sentences)
        for task, testset in available
        if not testsets or testset in testsets
    ]


def run_text(runs: Sequence[Path], testset: str, task: str) -> ReferenceText:
    """Read a test set of a task from the data of some runs, with its sentences' origins.

    Raises:
        EvalError: If the data have no such test set or task, or two runs have different text.
        DataError: If it cannot be read.
    """
    folders = _data_of(runs)
    texts = [_read_prepared(data, testset, task) for data in folders]
    for data, text in zip(folders, texts, strict=True):
        if text.checksum != texts[0].checksum:
            raise EvalError(f"{testset} {task}: {folders[0].folder} and {data.folder} hold different text.")
    groups = folders[0].groups(testset, task)
    return replace(texts[0], origins=None if groups is None else groups.origins)


def tasks_of_run(run: Path, testset: str) -> list[str]:
    """Return the tasks that have a test set in a run's data.

    Raises:
        EvalError: If no task has it.
        RunError: If the run's record cannot be read.
        DataError: If its data cannot be read.
    """
    return _tasks_with(_data_of([run])[0], testset)


def tasks_of_runs(runs: Sequence[Path]) -> tuple[str, ...]:
    """Return all tasks of some runs' data.

    Raises:
        RunError: If a run's record cannot be read.
        DataError: If its data cannot be read.
    """
    return tuple(dict.fromkeys(task for data in _data_of(runs) for task in data.evaluated))


def _data_of(runs: Sequence[Path]) -> list[PreparedData]:
    """Open the data of some runs, each folder once."""
    if not runs:
        return []
    from mnmt_model.runs import open_data  # which plain files do without

    return list({data.folder: data for data in map(open_data, runs)}.values())


def _tasks_with(data: PreparedData, testset: str) -> list[str]:
    """Return the tasks with a test set, at least one."""
    tasks = [task for task in data.evaluated if testset in data.testsets(task)]
    if not tasks:
        names = dict.fromkeys(name for task in data.evaluated for name in data.testsets(task))
        choices = ", ".join(names) or "none"
        raise EvalError(f"{data.folder}: has no test set {testset!r}; its test sets are {choices}.")
    return tasks


def _read_prepared(data: PreparedData, testset: str, task: str) -> ReferenceText:
    tasks = _tasks_with(data, testset)
    if task not in tasks:
        raise EvalError(f"{data.folder}: has no {testset} {task}; it has {', '.join(tasks)}.")
    src, references = data.text(testset, task)
    weights = None
    if data.weighted(testset, task):
        weights = data.shard(testset, task).loss_weights().astype(np.float64)
    return ReferenceText(
        testset=testset, task=task, tasks=data.evaluated, references=[references], src=src, weights=weights
    )


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """A text in files with a sentence a line."""

    task: str = ""
    """The language pair; empty if unknown."""
    references: tuple[Path, ...]
    """A file, or several with a reference each; none for a reference-free comparison."""
    source: Path | None = None
    """A file of sources, or None if they are not known."""
    reference_columns: tuple[str, ...] = ()
    """The columns of references, if their files are tables; each is a reference."""
    source_column: str | None = None
    """The column of sources, if their file is a table."""

    def read(self, testset: str) -> ReferenceText:
        """Read the text, under the name of a test set.

        Raises:
            EvalError: If there are no lines, files differ in their number, or they are not UTF-8.
            DataError: If the task has no codes.
            OSError: If a file is missing.
        """
        for code in languages_of(self.task) if self.task else ():
            check_code(code)
        sides = [
            (path, read_text(path, column, option="--reference-column"))
            for path in self.references
            for column in self.reference_columns or (None,)
        ]
        names = [
            f"{path} (column {column})" if column else str(path)
            for path in self.references
            for column in self.reference_columns or (None,)
        ]
        references, src = [lines for _, lines in sides], list[str]()
        if self.source is not None:
            src = read_text(self.source, self.source_column, option="--source-column")
            sides.append((self.source, src))
        for path, lines in sides:
            first, count = sides[0][0], len(sides[0][1])
            if not count:
                raise EvalError(f"{first}: must have at least one line, but is empty.")
            if len(lines) != count:
                raise EvalError(f"{path}: must have {count} lines, as {first} has, but has {len(lines)}.")
        return ReferenceText(
            testset=testset, task=self.task, references=references, reference_names=names, src=src
        )


def read_documents(path: Path, sentences: int) -> list[str]:
    """Return the document of each sentence, a name a line.

    Raises:
        EvalError: If there are more or fewer than `sentences`, or a line is blank.
        DataError: If the file cannot be read.
    """
    documents = read_lines(path)
    if len(documents) != sentences:
        raise EvalError(
            f"{path}: must name the documents of {sentences} sentences, one a line, but has {len(documents)}."
        )
    if blank := next((place for place, name in enumerate(documents, start=1) if not name.strip()), None):
        raise EvalError(f"{path}:{blank}: must name the document of this sentence, but is blank.")
    return documents
