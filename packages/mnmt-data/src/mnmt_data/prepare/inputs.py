"""What a study reads: the sources of every split and task, and their checksums."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.prepare.config import CARVED, DataConfig
from mnmt_data.readers import Reader, find_readers, open_reader
from mnmt_data.store.atomic_file import checksum, write_json
from mnmt_data.store.corpus_folder import bitext_paths
from mnmt_data.study import structure
from mnmt_data.synthetic import SyntheticConfig, write_synthetic_corpus

DESCRIPTION = "corpus.json"


@dataclass(frozen=True, kw_only=True)
class Source:
    """One of the sources of a split and task."""

    split: str
    task: str
    number: int
    """From 0, among those of the split and task."""
    reader: Reader

    @property
    def name(self) -> str:
        """A name for files: `train.en-de.000`."""
        return f"{self.split}.{self.task}.{self.number:03}"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All sources of a study."""

    sources: tuple[Source, ...]
    irreducible: Mapping[str, float] = field(default_factory=dict)
    """{task: nats per token}, where the corpus says so: such text was made and is taken as it is."""

    def of(self, split: str, task: str) -> list[Source]:
        """The sources of a split and task; none if its dev or test set is to be carved."""
        return [source for source in self.sources if (source.split, source.task) == (split, task)]

    @property
    def paths(self) -> Iterator[tuple[str, Path]]:
        """(name of the source, file) of every file that will be read."""
        for source in self.sources:
            for path in source.reader.paths:
                yield source.name, path


def find_inputs(config: DataConfig, corpus: Path | None) -> Inputs:
    """Look for the text of `config`; `corpus` is its corpus folder or the one of its made languages.

    Raises:
        DataError: If a task has no training text, a zero-shot one neither sets nor text to take them from, or
            a test corpus none of the tasks.
    """
    sources = [
        Source(split=split, task=task, number=number, reader=reader)
        for split, task in _places(config)
        for number, reader in enumerate(_readers(config, corpus, split, task))
    ]
    for task in config.zero_shot:
        sources = _without_needless_train(config, corpus, task, sources)
    inputs = Inputs(sources=tuple(sources), irreducible=_irreducible(corpus, config.evaluated))
    for task in config.tasks:
        if not inputs.of("train", task):
            raise _missing_train(config, corpus, task)
    for name, folder in config.test_corpora.items():
        if not any(source.split == name for source in sources):
            wanted = bitext_paths(folder, name, config.tasks[0])[0]
            raise DataError(f"{wanted}: no such file; the test corpus {name!r} needs one of the tasks.")
    return inputs


def _places(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Every split and task that may have text, training text first."""
    for split in dict.fromkeys(("train", *CARVED, *config.files, *config.test_corpora)):
        for task in config.evaluated:
            yield split, task


def _without_needless_train(
    config: DataConfig, corpus: Path | None, task: str, sources: list[Source]
) -> list[Source]:
    """The sources without the training text of a zero-shot task, unless sets must be taken out of it."""
    splits = {source.split for source in sources if source.task == task}
    missing = [split for split in CARVED if split not in splits]
    if not missing:
        return [source for source in sources if (source.split, source.task) != ("train", task)]
    if "train" in splits:
        return sources
    if corpus is None:
        raise DataError(f"[data] `files.{missing[0]}` names no source of {task}, a zero-shot task; give one.")
    wanted = bitext_paths(corpus, missing[0], task)[0]
    raise DataError(f"{wanted}: no such file; a zero-shot task needs it, or a train set to take it from.")


def _readers(config: DataConfig, corpus: Path | None, split: str, task: str) -> Iterator[Reader]:
    folder = corpus if split in ("train", *CARVED) else config.test_corpora.get(split)
    if folder is not None:
        yield from find_readers(folder, split, task)
    for source in config.files.get(split, {}).get(task, ()):
        yield open_reader(source, task)


def _missing_train(config: DataConfig, corpus: Path | None, task: str) -> DataError:
    if corpus is None:
        return DataError(f"[data] `files.train` names no source of {task}; give one.")
    wanted = bitext_paths(corpus, "train", task)[0]
    return DataError(f"{wanted}: no such file; a task needs training text of both sides.")


def _irreducible(corpus: Path | None, tasks: tuple[str, ...]) -> dict[str, float]:
    path = corpus / DESCRIPTION if corpus is not None else None
    if path is None or not path.is_file():
        return {}
    try:
        stated = json.loads(path.read_text(encoding="utf-8")).get("irreducible", {})
        return {task: float(stated[task]) for task in tasks if task in stated}
    except (ValueError, AttributeError, TypeError):
        raise DataError(f"{path}: not the description of a corpus; mend or remove it.") from None


def is_made(config: SyntheticConfig, folder: Path, digests: Digests) -> bool:
    """Whether the corpus in a folder is whole and was made with these settings."""
    try:
        stated = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        made = structure(stated["provenance"]["config"], SyntheticConfig, where="config")
        return made == config and all(
            digests.of(folder / name) == digest for name, digest in stated["sha256"].items()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def make_corpus(config: SyntheticConfig, folder: Path) -> None:
    """Write the corpus; its description, without which it is not made, comes last."""
    (folder / DESCRIPTION).unlink(missing_ok=True)
    write_synthetic_corpus(config, folder)


_SETTLED_NS = 2_000_000_000
"""A file that changed so lately may change again and keep its time of change."""

Stamp = tuple[int, int]
"""Size and time of last change, in nanoseconds."""


class Digests:
    """SHA-256 of files, from a cache where size and time of change are as before."""

    def __init__(self, cache: Path) -> None:
        self._path = cache
        self._cache = _read_cache(cache)
        self._used: dict[Path, Stamp] = {}

    def of(self, path: Path) -> str:
        """SHA-256 of a file."""
        size, changed = self._used[path] = _stamp(path)
        known = self._cache.get(str(path.resolve()))
        if known is not None and known[:2] == [size, changed]:
            return str(known[2])
        digest = checksum(path)
        if time.time_ns() - changed > _SETTLED_NS:
            self._cache[str(path.resolve())] = [size, changed, digest]
        return digest

    def save(self) -> None:
        """Write the cache."""
        write_json(self._path, self._cache)

    def check_unchanged(self) -> None:
        """Look whether the files are still those that `of` saw.

        Raises:
            DataError: Naming one that is not.
        """
        for path, stamp in self._used.items():
            if not path.exists() or _stamp(path) != stamp:
                raise DataError(f"{path}: changed while it was read; run `mnmt-data prepare` again.")


def _stamp(path: Path) -> Stamp:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _read_cache(path: Path) -> dict[str, list[int | str]]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}
