"""The third stage: the vocabulary, trained on a sample that raises the shares of small languages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError, folder_holds
from mnmt_data.prepare.clean import CleanedSplits
from mnmt_data.prepare.config import DataConfig, VocabConfig
from mnmt_data.prepare.dev_test_sets import Rows
from mnmt_data.prepare.splits import split_rows
from mnmt_data.prepare.stages import Report, Stages
from mnmt_data.prepare.workspace import Parts, Workspace
from mnmt_data.store.atomic_file import atomic_file
from mnmt_data.store.prepared import VOCABULARY
from mnmt_data.store.renumbering import is_ours, renumber
from mnmt_data.store.vocabulary import Vocabulary, read_sentencepiece, tag_of, train_vocabulary

Side = tuple[str, str]
"""A task and `src` or `tgt`."""

_ROWS_AT_A_TIME = 2**20


@dataclass(frozen=True, kw_only=True)
class VocabularyJob:
    """A vocabulary to train on a file of text."""

    sample: Path
    """Text, a sentence a line."""
    sentences: int
    out: Path
    settings: VocabConfig
    languages: tuple[str, ...]
    """Target languages, each of which gets a tag."""

    def __len__(self) -> int:
        return self.sentences


def prepare_vocabulary(config: DataConfig, parts: CleanedSplits, space: Workspace, stages: Stages) -> Path:
    """Train the vocabulary, or copy the one that the study names, unless the file exists; return its path.

    The sample is written first, so that after a kill only the training is repeated, for which SentencePiece
    has no checkpoints. A worker trains, so that the command is free to end on a signal.

    Raises:
        DataError: If the named one lacks a tag, or the text does not suit the size.
    """
    path, settings = space.folder / VOCABULARY, config.vocab
    if path.is_file():
        return path
    if settings.path is not None:
        with atomic_file(path) as file:
            file.write(_given_vocabulary(settings.path, config.target_languages, stages.report))
        return path
    sample = space.work / "vocabulary.txt"
    if (sentences := space.mark(sample.stem)) is None:
        sentences = _write_sample(sample, _sample(config, parts["train"], space))
        space.set_mark(sample.stem, sentences)
    stages.report("vocabulary: training on a sample")
    languages = config.target_languages
    job = VocabularyJob(sample=sample, sentences=sentences, out=path, settings=settings, languages=languages)
    for _ in stages.run("vocabulary", run_vocabulary_job, [job], report=False):
        sample.unlink()
    return path


def run_vocabulary_job(job: VocabularyJob) -> None:
    """Train a vocabulary, and write its file.

    Raises:
        DataError: If the text does not suit the size.
    """
    settings = job.settings
    with job.sample.open(encoding="utf-8", newline="\n") as lines:
        try:
            train_vocabulary(
                (line.removesuffix("\n") for line in lines),
                job.out,
                kind=settings.kind,
                size=settings.size,
                languages=job.languages,
                byte_fallback=settings.byte_fallback,
                character_coverage=settings.character_coverage,
            )
        except ValueError as error:
            raise DataError(f"[data.vocab] {error}") from error


def _given_vocabulary(path: Path, languages: tuple[str, ...], report: Report) -> bytes:
    """Return a vocabulary that a study names, with our ids and tags."""
    if _needs_no_change(path):
        return path.read_bytes()
    tags = ", ".join(map(tag_of, languages))
    report(f"vocabulary: {path} is renumbered: 0 <pad>, 1 </s>, 2 <unk>, {tags}; it segments as before")
    return renumber(path, languages)


def _needs_no_change(path: Path) -> bool:
    """Return whether a model has our ids and tags, so that ids of runs with it stay as they are."""
    return is_ours(read_sentencepiece(path))


def _write_sample(path: Path, lines: Iterable[str]) -> int:
    """Write sentences to a file; return their number."""
    number = 0
    with atomic_file(path) as file:
        for line in lines:
            file.write(f"{line}\n".encode())
            number += 1
    return number


def check_vocabulary(config: DataConfig) -> None:
    """Check that the vocabulary that a study names, if any, can be used again.

    Raises:
        DataError: If it is missing, broken, or has no tag for a target language.
    """
    if (path := config.vocab.path) is None:
        return
    where = f"[data.vocab] `path`: {path}"
    if not path.is_file():
        raise DataError(f"{where}: no such file; {folder_holds(path)}.")
    try:
        if not _needs_no_change(path):
            return
        vocab = Vocabulary.load(path)
    except DataError as error:
        raise DataError(f"[data.vocab] `path`: {error}") from None
    for language in config.target_languages:
        try:
            vocab.tag(language)
        except DataError:
            remedy = "take a vocabulary with it, or tasks into other languages"
            raise DataError(f"{where}: has no tag <2{language}>; {remedy}.") from None


def language_shares(lines: Mapping[str, int], temperature: float) -> dict[str, float]:
    """Return {language: share of the sample}, proportional to (its lines)^(1/T)."""
    weights = {language: count ** (1 / temperature) for language, count in lines.items()}
    return {language: weight / sum(weights.values()) for language, weight in weights.items()}


def sample_sizes(lines: Mapping[Side, int], settings: VocabConfig) -> dict[Side, int]:
    """Return {task and side: lines to sample}: each language's share, divided in proportion to the lines."""
    by_language: dict[str, int] = {}
    for side, count in lines.items():
        by_language[_language(side)] = by_language.get(_language(side), 0) + count
    shares = language_shares(by_language, settings.temperature)
    total = min(settings.sentences, sum(lines.values()))
    return {
        side: round(total * shares[_language(side)] * count / by_language[_language(side)])
        for side, count in lines.items()
    }


def _sample(config: DataConfig, train: Mapping[str, Parts], space: Workspace) -> Iterator[str]:
    """Yield evenly spaced lines of each side of each task; they repeat where a share exceeds the text."""
    masks = {task: split_rows(space, "train", task) for task in train if task in config.tasks}
    sides = {(task, side): int(np.count_nonzero(masks[task])) for task in masks for side in ("src", "tgt")}
    for (task, side), size in sample_sizes(sides, config.vocab).items():
        for (line,) in train[task].values(evenly_spaced_rows(masks[task], size), side):
            yield line


def evenly_spaced_rows(mask: NDArray[np.bool_], size: int) -> Rows:
    """Return evenly spaced rows of a mask, sorted, (size,); rows repeat where `size` exceeds them."""
    total = int(np.count_nonzero(mask))
    ranks = np.arange(size) * total // max(size, 1)
    rows, before = np.empty(size, dtype=np.int64), 0
    for start in range(0, len(mask), _ROWS_AT_A_TIME):
        block = np.flatnonzero(mask[start : start + _ROWS_AT_A_TIME]) + start
        part = slice(*np.searchsorted(ranks, (before, before + len(block))))
        rows[part] = block[ranks[part] - before]
        before += len(block)
    return rows


def _language(side: Side) -> str:
    task, which = side
    return task.split("-")[which == "tgt"]
