"""The inputs of a study: the sources of every split and task, and their checksums."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from mnmt_data.errors import DataError, folder_holds
from mnmt_data.prepare.checksums import ChecksumCache
from mnmt_data.prepare.config import DEV_AND_TEST, DataConfig
from mnmt_data.readers import (
    Block,
    Reader,
    ScoreColumn,
    ScoredReader,
    find_readers,
    open_readers,
    with_scores,
)
from mnmt_data.readers.columns import Table, with_columns
from mnmt_data.readers.language_codes import languages, opposite
from mnmt_data.store.corpus_folder import DESCRIPTION, bitext_paths, weights_path
from mnmt_data.store.remote import normal_url
from mnmt_data.study import structure
from mnmt_data.synthetic import Languages, write_synthetic_corpus


@dataclass(frozen=True, kw_only=True)
class Source:
    """One of the sources of a split and task."""

    split: str
    task: str
    number: int
    """Position among the sources of the split and task, from 0."""
    reader: Reader

    @property
    def name(self) -> str:
        """Name for files, such as `train.en-de.000`."""
        return f"{self.split}.{self.task}.{self.number:03}"

    @cached_property
    def bytes(self) -> int:
        """Size of its files, or of the archives that hold them."""
        return sum(path.stat().st_size for path in self.reader.paths)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All sources of a study."""

    sources: tuple[Source, ...]
    irreducible: Mapping[str, float] = field(default_factory=dict)
    """{task: nats per token} of synthetic languages, whose text stays unchanged; else empty."""
    power_law_limit: Mapping[str, float] = field(default_factory=dict)
    """{task: nats per token} of synthetic languages whose losses follow a power law with another limit."""
    weights: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    """{(test set, task): file with the weight of each pair} of synthetic languages."""
    opposites: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """{(split, task): the opposite task with the same pairs}; `sources` lists them once, under that task."""

    def of(self, split: str, task: str) -> list[Source]:
        """Return the sources of a split and task; empty if the set is sampled from train."""
        return [source for source in self.sources if (source.split, source.task) == (split, task)]

    def readers_of(self, split: str, task: str) -> tuple[str, ...]:
        """Return the tasks that read the pairs of a split and task: itself and perhaps the opposite."""
        others = (other for (name, other), first in self.opposites.items() if (name, first) == (split, task))
        return task, *others

    @property
    def paths(self) -> Iterator[tuple[str, Path]]:
        """Every file to read, as (name of the source, file)."""
        for source in self.sources:
            for path in source.reader.paths:
                yield source.name, path
        for (testset, task), path in self.weights.items():
            yield f"{testset}.{task}.weights", path


def find_inputs(config: DataConfig, corpus: Path | None) -> Inputs:
    """Find the text of `config`; `corpus` is its corpus folder, perhaps of synthetic languages.

    Raises:
        DataError: If a task has no training text, a zero-shot task has neither dev and test sets nor training
            text, a test corpus lacks all tasks, or a table for both directions does not name its sides.
    """
    sources = [
        Source(split=split, task=task, number=number, reader=reader)
        for split, task in _splits_and_tasks(config)
        for number, reader in enumerate(_readers(config, corpus, split, task))
    ]
    _check_columns(config, [source.reader for source in sources])
    for task in config.zero_shot:
        sources = _without_needless_train(config, corpus, task, sources)
    known = _known_losses(corpus, "irreducible", config.evaluated)
    for task in config.tasks:
        if not any((source.split, source.task) == ("train", task) for source in sources):
            raise _missing_train(config, corpus, task)
    weights = _weights(corpus, config.evaluated) if known else {}
    opposites = _opposites(config, sources, weights)
    _check_directions(config, sources, opposites)
    inputs = Inputs(
        sources=tuple(source for source in sources if (source.split, source.task) not in opposites),
        irreducible=known,
        power_law_limit=_known_losses(corpus, "power_law_limit", config.evaluated),
        weights=weights,
        opposites=opposites,
    )
    for name, folder in config.test_corpora.items():
        if not any(source.split == name for source in sources):
            expected = bitext_paths(folder, name, config.tasks[0])[0]
            what = f"the test corpus {name!r} needs one of the tasks"
            raise DataError(f"{normal_url(expected)}: no such file; {what}; {folder_holds(expected)}.")
    return inputs


def _splits_and_tasks(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Yield every split and task that may have text, training text first."""
    for split in dict.fromkeys(("train", *DEV_AND_TEST, *config.files, *config.test_corpora)):
        for task in config.evaluated:
            yield split, task


def _without_needless_train(
    config: DataConfig, corpus: Path | None, task: str, sources: list[Source]
) -> list[Source]:
    """Leave out the training text of a zero-shot task, unless sets must be taken out of it."""
    splits = {source.split for source in sources if source.task == task}
    missing = [split for split in DEV_AND_TEST if split not in splits]
    if not missing:
        return [source for source in sources if (source.split, source.task) != ("train", task)]
    if "train" in splits:
        return sources
    if corpus is None:
        raise DataError(f"[data] `files.{missing[0]}` names no source of {task}, a zero-shot task; give one.")
    expected = bitext_paths(corpus, missing[0], task)[0]
    what = "a zero-shot task needs it, or a train set to take it from"
    raise DataError(f"{normal_url(expected)}: no such file; {what}; {folder_holds(expected)}.")


def _opposites(
    config: DataConfig, sources: Iterable[Source], weights: Mapping[tuple[str, str], Path]
) -> dict[tuple[str, str], str]:
    """Return {(split, task): the opposite task}, where that comes first and is read from the same sources.

    Sets taken out of training text that both directions share are the same too. Where one direction takes
    such a set and the other has one given, they do not share that text.
    """
    origins: dict[tuple[str, str], list[object]] = {}
    for source in sources:
        place = source.split, source.task
        named = config.files.get(source.split, {}).get(source.task)
        origins.setdefault(place, [named, weights.get(place)]).append(frozenset(source.reader.paths))
    opposites: dict[tuple[str, str], str] = {}
    for split, task in _splits_and_tasks(config):
        first = opposite(task)
        if first not in config.evaluated[: config.evaluated.index(task)]:
            continue
        text = origins.get((split, task))
        if split == "train":
            alike = all(((name, task) in origins) == ((name, first) in origins) for name in DEV_AND_TEST)
            is_same = alike and text is not None
        else:
            is_same = text is not None or ("train", task) in opposites
        if is_same and text == origins.get((split, first)):
            opposites[split, task] = first
    return opposites


def _check_directions(
    config: DataConfig, sources: Iterable[Source], opposites: Mapping[tuple[str, str], str]
) -> None:
    """Refuse a table that both directions would read with the same side as source."""
    readers = {(source.split, source.task, source.number): source.reader for source in sources}
    for (split, task, number), reader in readers.items():
        first = readers.get((split, opposites.get((split, task), ""), number))
        table = _table(reader)
        if first is None or table is None:
            continue
        skip_bad = config.on_bad_line == "skip" and split == "train"
        one, other = (_head(reader, skip_bad) for reader in (first, reader))
        if one.src == other.src != one.tgt:
            what = "does not say which side is which, and is for both directions"
            src, tgt = languages(task)
            remedy = f"name columns after the languages, or write {table.toml(f'{src} = 2', f'{tgt} = 1')}"
            raise DataError(f"{table.path}: {what}; {remedy}.")


def _table(reader: Reader) -> Table | None:
    reader = reader.reader if isinstance(reader, ScoredReader) else reader
    return reader if isinstance(reader, Table) else None


def _check_columns(config: DataConfig, readers: Iterable[Reader]) -> None:
    """Refuse names of columns for a table that is not there."""
    tables = [table for table in map(_table, readers) if table is not None]
    for name in config.columns:
        if not any(table.is_named(name) for table in tables):
            listed = ", ".join(dict.fromkeys(table.path.name for table in tables)) or "none"
            raise DataError(f"[data.columns] {name!r} is no table of the study; its tables are {listed}.")


def _head(reader: Reader, skip_bad: bool) -> Block:
    """Return the first block of a source; an empty block if the source is empty."""
    return next(reader.blocks(skip_bad=skip_bad), Block(src=[], tgt=[], first=0))


def _readers(config: DataConfig, corpus: Path | None, split: str, task: str) -> Iterator[Reader]:
    """Yield the readers of a split and task; readers of training text include its scores."""
    scores = [ScoreColumn(name=name, column=score.column or name) for name, score in config.scores.items()]
    for text in _text_readers(config, corpus, split, task):
        reader = with_columns(text, config.columns)
        yield with_scores(reader, scores) if scores and split == "train" else reader


def _text_readers(config: DataConfig, corpus: Path | None, split: str, task: str) -> Iterator[Reader]:
    folder = corpus if split in ("train", *DEV_AND_TEST) else config.test_corpora.get(split)
    if folder is not None:
        yield from find_readers(folder, split, task)
    for source in config.files.get(split, {}).get(task, ()):
        yield from open_readers(source, task)


def _missing_train(config: DataConfig, corpus: Path | None, task: str) -> DataError:
    if corpus is None:
        return DataError(f"[data] `files.train` names no source of {task}; give one.")
    expected = bitext_paths(corpus, "train", task)[0]
    what = "a task needs training text of both sides"
    return DataError(f"{normal_url(expected)}: no such file; {what}; {folder_holds(expected)}.")


def _weights(corpus: Path | None, tasks: tuple[str, ...]) -> dict[tuple[str, str], Path]:
    """Return the files with weights of the test sets of a corpus."""
    files = {("test", task): weights_path(corpus, "test", task) for task in tasks} if corpus else {}
    return {name: path for name, path in files.items() if path.is_file()}


def _known_losses(corpus: Path | None, name: str, tasks: tuple[str, ...]) -> dict[str, float]:
    """Return the entry `name` of a corpus description, {task: nats per token}; empty if missing."""
    path = corpus / DESCRIPTION if corpus is not None else None
    if path is None or not path.is_file():
        return {}
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        losses = description.get(name, {})
        return {task: float(losses[task]) for task in tasks if task in losses}
    except (ValueError, AttributeError, TypeError):
        raise DataError(f"{path}: not the description of a corpus; mend or remove it.") from None


def synthetic_corpus(
    config: Languages, folder: Path, checksums: ChecksumCache, report: Callable[[str], None]
) -> Path:
    """Write the corpus of synthetic languages, unless it is there with these settings; return `folder`."""
    if not _is_written(config, folder, checksums):
        report("writing synthetic languages")
        (folder / DESCRIPTION).unlink(missing_ok=True)
        write_synthetic_corpus(config, folder)
    return folder


def _is_written(config: Languages, folder: Path, checksums: ChecksumCache) -> bool:
    """Return whether the corpus in a folder is complete and has these settings."""
    try:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        settings = structure(description["provenance"]["config"], type(config), where="config")
        recorded = {folder / name: checksum for name, checksum in description["sha256"].items()}
        return settings == config and checksums.of(recorded) == recorded
    except (OSError, ValueError, KeyError, TypeError):
        return False
