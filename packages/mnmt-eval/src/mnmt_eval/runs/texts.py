"""The test sets of prepared data, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mnmt_data.store import PreparedData
from mnmt_eval.errors import EvalError
from mnmt_eval.language.codes import languages_of
from mnmt_eval.text import digest, read_lines
from mnmt_model.runs import open_data


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
    data: PreparedData, *, testsets: Sequence[str], max_sentences: int | None
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


@dataclass(frozen=True, kw_only=True)
class ReferenceText:
    """References of one task and test set, and what else is known of each sentence."""

    testset: str
    task: str
    references: Sequence[Sequence[str]]
    """The sentences of the first reference, those of the second, …"""

    tasks: Sequence[str]
    """All language pairs of the study, for the languages that translations may be in; none where unknown."""

    src: Sequence[str] = ()
    """Sources; empty where they are not known."""

    origins: Sequence[str] | None = None
    """The language that each pair was written in; None where nobody knows."""

    def __len__(self) -> int:
        return len(self.references[0])

    @property
    def digest(self) -> str:
        """A checksum of sources and references."""
        return digest(self.src, *self.references)

    def first(self, count: int) -> ReferenceText:
        """Its first sentences."""
        return replace(
            self,
            references=[lines[:count] for lines in self.references],
            src=self.src[:count],
            origins=None if self.origins is None else self.origins[:count],
        )


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """A text in plain files, a sentence a line."""

    pair: str
    """The language pair, such as `en-de`."""

    references: tuple[Path, ...]
    """A file, or several with a reference each."""

    source: Path | None = None

    def read(self, testset: str) -> ReferenceText:
        """The text, under the name of a test set.

        Raises:
            EvalError: If there are no lines, files differ in their number, or they are not UTF-8.
            OSError: If a file is missing.
        """
        languages_of(self.pair)
        first = self.references[0]
        references = [read_lines(path) for path in self.references]
        if not references[0]:
            raise EvalError(f"{first}: must have at least one line, but is empty.")
        src = [] if self.source is None else read_lines(self.source)
        sides = list(zip(self.references, references, strict=True))
        sides += [] if self.source is None else [(self.source, src)]
        count = len(references[0])
        for path, lines in sides:
            if len(lines) != count:
                raise EvalError(f"{path}: must have as many lines as {first}, {count}, but has {len(lines)}.")
        return ReferenceText(testset=testset, task=self.pair, tasks=(), references=references, src=src)


def text_files(*, references: Sequence[Path], source: Path | None, pair: str | None) -> TextFiles | None:
    """The text that options name; None if they name no reference.

    Raises:
        EvalError: If a source is named without a reference, or references without their pair.
    """
    if not references:
        if source is not None:
            raise EvalError(f"{source}: a source is of use only with references; name them with --reference.")
        return None
    if pair is None:
        raise EvalError("references need their language pair; name it with --pair, as in --pair en-de.")
    return TextFiles(pair=pair, references=tuple(references), source=source)


def run_texts(runs: Sequence[Path], testset: str, task: str) -> ReferenceText:
    """The text of a task in the data of some runs.

    Raises:
        EvalError: If the data have no such test set or task, or two runs have different text.
        DataError: If it cannot be read.
    """
    opened = _data_of(runs)
    texts = [_prepared_text(data, testset, task) for data in opened]
    for data, text in zip(opened, texts, strict=True):
        if text.digest != texts[0].digest:
            raise EvalError(f"{testset} {task}: {opened[0].folder} and {data.folder} hold different text.")
    return texts[0]


def tasks_of_run(run: Path, testset: str) -> list[str]:
    """Tasks that a run's data have in a test set.

    Raises:
        RunError, DataError: If its record or data cannot be read.
    """
    data = open_data(run)
    return [task for task in data.evaluated if testset in data.testsets(task)]


def tasks_of_runs(runs: Sequence[Path]) -> tuple[str, ...]:
    """All language pairs of some runs' data.

    Raises:
        RunError, DataError: If a record or data cannot be read.
    """
    return tuple(dict.fromkeys(task for data in _data_of(runs) for task in data.evaluated))


def _data_of(runs: Sequence[Path]) -> list[PreparedData]:
    """The data of some runs, each once."""
    return list({data.folder: data for data in map(open_data, runs)}.values())


def _prepared_text(data: PreparedData, testset: str, task: str) -> ReferenceText:
    known = [name for name in data.evaluated if testset in data.testsets(name)]
    if task not in known:
        raise EvalError(f"{data.folder}: has no {testset} {task}; it has {', '.join(known) or 'none'}.")
    src, references = data.text(testset, task)
    groups = data.groups(testset, task)
    origins = None if groups is None else groups.origins
    return ReferenceText(
        testset=testset, task=task, tasks=data.evaluated, references=[references], src=src, origins=origins
    )
