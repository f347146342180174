"""Prepared data: what training and evaluation read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file, checksum
from mnmt_data.store.corpus_folder import bitext_paths, read_bitext
from mnmt_data.store.description import DESCRIPTION, PreparedDescription, SplitInfo
from mnmt_data.store.direction import Direction
from mnmt_data.store.groups import Groups, groups_path, read_groups
from mnmt_data.store.lock import file_lock
from mnmt_data.store.remote import cache_folder, fetch, is_url, local_copy, normal_url
from mnmt_data.store.scores import read_scores, score_path
from mnmt_data.store.segments import check_file
from mnmt_data.store.shards import WEIGHTS, Shard, segment_path
from mnmt_data.store.vocabulary import Vocabulary

VOCABULARY = "vocab.model"


@dataclass(frozen=True, kw_only=True)
class PreparedData:
    """A folder of prepared data (docs/architecture.md)."""

    folder: Path
    description: PreparedDescription
    """The content of prepared.json."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Language pairs with training pairs."""
        return self.description.tasks

    @property
    def zero_shot(self) -> tuple[str, ...]:
        """Language pairs that have dev and test sets and no training pairs."""
        return self.description.zero_shot

    @property
    def evaluated(self) -> tuple[str, ...]:
        """All language pairs with dev and test sets: `tasks`, then `zero_shot`."""
        return self.tasks + self.zero_shot

    @property
    def irreducible(self) -> dict[str, float]:
        """{task: irreducible loss in nats per token}, empty where it is unknown."""
        return dict(self.description.irreducible)

    @property
    def fingerprint(self) -> str:
        """Hash of the inputs and settings that these data were made from."""
        return self.description.fingerprint

    @cached_property
    def vocab(self) -> Vocabulary:
        """The shared vocabulary, which puts the target tag where these data have it."""
        target_tag = self.description.vocabulary.target_tag
        self._verify(self.folder / VOCABULARY)
        return Vocabulary.load(self.folder / VOCABULARY, target_tag=target_tag)

    @property
    def max_length(self) -> int:
        """The most tokens of a side of a training pair, tag and `</s>` included."""
        return int(self.description.config["max_length"])

    @property
    def train_counts(self) -> Mapping[str, SplitInfo]:
        """{task: counts of its training pairs and tokens}."""
        return self.description.counts["train"]

    def testsets(self, task: str) -> tuple[str, ...]:
        """Return the test sets of a task: its splits other than train and dev."""
        counts = self.description.counts
        return tuple(split for split in counts if split not in ("train", "dev") and task in counts[split])

    def weighted(self, testset: str, task: str) -> bool:
        """Return whether the pairs of a test set have weights, as those of an exact one (see `Shard`)."""
        return (shard_path(self.folder, testset, task) / WEIGHTS).exists()

    def shard(self, split: str, task: str) -> Shard:
        """Open the token ids of a split as the task reads them, with target tags in their place.

        Checksums are verified when rows are read.

        Raises:
            DataError: If the shard is missing, damaged or does not match prepared.json, or these are training
                pairs of a zero-shot task.
        """
        if split == "train":
            self.check_trainable([task])
        stored = self.description.shards.get(split, {}).get(task, task)
        path, vocabulary = shard_path(self.folder, split, stored), self.description.vocabulary
        tag = vocabulary.tags[task.split("-")[1]] if vocabulary.target_tag != "none" else 0
        direction = Direction(swapped=stored != task, target_tag=vocabulary.target_tag, tag=tag)
        return Shard.open(
            path,
            weights_sha256=self._sha256(path / WEIGHTS),
            direction=direction,
            info=self.description.counts.get(split, {}).get(task),
            digest=self._digest(path, direction),
        )

    def scores(self, task: str, name: str) -> Iterator[NDArray[np.float32]]:
        """Yield a score of the training pairs of a task, made by another tool, by segment: (pairs,) each.

        Raises:
            DataError: If the data have no such score, or a file of it is missing, broken or has changed.
        """
        self.check_trainable([task])
        names = tuple(self.description.config.get("scores", {}))
        if name not in names:
            valid = ", ".join(names) or "none"
            raise DataError(f"{self.folder}: has no score {name!r} of training pairs; it has {valid}.")
        stored = self.description.shards.get("train", {}).get(task, task)
        folder = shard_path(self.folder, "train", stored)
        for number in range(len(list(folder.glob("*.arrow")))):
            path = score_path(segment_path(folder, number), name)
            self._verify(path)
            yield read_scores(path)

    def text(self, split: str, task: str) -> tuple[list[str], list[str]]:
        """Read the source and target lines of a split other than train.

        Raises:
            DataError: If they are missing or broken, or have changed since they were written.
        """
        self._verify(*bitext_paths(text_folder(self.folder), split, task))
        bitext = read_bitext(text_folder(self.folder), split, task)
        return bitext.src, bitext.tgt

    def groups(self, split: str, task: str) -> Groups | None:
        """Read the groups of the pairs of `text`; None where the corpus has no original languages.

        Raises:
            DataError: If their file is broken, or has changed since it was written.
        """
        self._verify(groups_path(text_folder(self.folder), split, task))
        return read_groups(text_folder(self.folder), split, task)

    def check_trainable(self, tasks: Iterable[str]) -> None:
        """Check that every given task has training pairs.

        Raises:
            DataError: If one has none; the message lists the tasks that have.
        """
        for task in tasks:
            if task not in self.tasks:
                kind = ", a zero-shot task" if task in self.zero_shot else ""
                valid = ", ".join(self.tasks)
                raise DataError(f"{self.folder}: has no training pairs of {task}{kind}; it has {valid}.")

    def verify(self) -> None:
        """Read every file, and compare it with its checksum.

        Raises:
            DataError: If a file is missing or has changed; the message names the first.
        """
        self.check_sizes()
        for name, file in self.description.files.items():
            check_file(self.folder / name, sha256=file.sha256)

    def _verify(self, *paths: Path) -> None:
        """Compare small files with their checksums, where prepared.json knows them."""
        for path in paths:
            if (sha256 := self._sha256(path)) is not None:
                check_file(path, sha256=sha256)

    def _sha256(self, path: Path) -> str | None:
        file = self.description.files.get(path.relative_to(self.folder).as_posix())
        return None if file is None else file.sha256

    def _digest(self, shard: Path, direction: Direction) -> str | None:
        """Return a digest of a shard as it is read, by the checksums in prepared.json; None without these."""
        prefix = f"{shard.relative_to(self.folder).as_posix()}/"
        files = sorted(
            (name, file.sha256) for name, file in self.description.files.items() if name.startswith(prefix)
        )
        return blake2b(repr((files, direction)).encode(), digest_size=8).hexdigest() if files else None

    def check_sizes(self) -> None:
        """Check that every file exists and has its size in prepared.json.

        Raises:
            DataError: If a file is missing or has another size; the message names the first.
        """
        for name, file in self.description.files.items():
            path = self.folder / name
            if not path.is_file():
                raise DataError(f"{path}: no such file, but prepared.json lists it; prepare the data again.")
            if (size := path.stat().st_size) != file.bytes:
                expected = f"{file.bytes:,} bytes, but has {size:,}"
                raise DataError(f"{path}: must have {expected}; prepare the data again.")


def fetch_prepared(url: str | Path, folder: Path) -> PreparedData:
    """Fetch prepared data from a URL into a folder, and compare each file with its checksum.

    Files that are there with their checksum are not fetched again. `prepared.json`, which makes the folder
    complete, is the last.

    Raises:
        DataError: If a file cannot be fetched, or has changed since it was prepared.
    """
    source, local = normal_url(url), folder / DESCRIPTION
    remote = local_copy(f"{source}/{DESCRIPTION}")
    with file_lock(remote.with_name(".folder.lock"), name=folder, seconds=-1):
        content = remote.read_bytes()
        if not local.is_file() or local.read_bytes() != content:
            local.unlink(missing_ok=True)
            for name, file in PreparedDescription.read(remote.parent).files.items():
                path = folder / name
                if not path.resolve().is_relative_to(folder.resolve()):
                    raise DataError(f"{source}/{DESCRIPTION}: names {name}, which is outside the folder.")
                if not path.is_file() or checksum(path) != file.sha256:
                    fetch(f"{source}/{name}", path, size=file.bytes)
                    check_file(path, sha256=file.sha256)
            with atomic_file(local) as out:
                out.write(content)
    return open_prepared(folder)


def open_prepared(folder: Path | str) -> PreparedData:
    """Open prepared data; those at a URL are fetched into the cache first.

    Raises:
        DataError: If the folder or a file is missing, truncated, or of another version.
    """
    if is_url(folder):
        return fetch_prepared(folder, cache_folder(f"{normal_url(folder)}/data/"))
    folder = Path(folder)
    prepared = PreparedData(folder=folder, description=PreparedDescription.read(folder))
    prepared.check_sizes()
    return prepared


def shard_path(folder: Path, split: str, task: str) -> Path:
    """Return the folder of the segments of a split, stored in the direction of a task."""
    return folder / "shards" / f"{split}.{task}"


def text_folder(folder: Path) -> Path:
    """Return the folder of the text of dev and test sets."""
    return folder / "text"
