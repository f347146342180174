"""`prepared.json`: contents and provenance of prepared data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from xxhash import xxh3_64_hexdigest

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import write_json
from mnmt_data.store.direction import TargetTag
from mnmt_data.store.segments import SegmentInfo, changed
from mnmt_data.store.vocabulary import EOS, PAD, UNK
from mnmt_data.study import StructureError, structure

SCHEMA = 4
"""Version of the format."""

DESCRIPTION = "prepared.json"

CHECKSUM = "checksum"
"""Key of the checksum of all other entries."""


@dataclass(frozen=True, kw_only=True)
class VocabularyInfo:
    """The vocabulary's size and special ids."""

    size: int = 0
    """Number of ids."""

    pad: int = PAD
    """Id of the padding."""

    eos: int = EOS
    """Id of `</s>`."""

    unk: int = UNK
    """Id of an unknown token."""

    tags: Mapping[str, int] = field(default_factory=dict)
    """{target language: id of its tag}."""

    target_tag: TargetTag = "prepended"
    """The place of the target tag in a source."""


@dataclass(frozen=True, kw_only=True)
class SplitInfo(SegmentInfo):
    """Counts of the pairs and tokens of one split and task."""

    byte_tokens: int
    """Target tokens that encode one byte of a character without a piece."""

    unknown_tokens: int
    """Target tokens that are unknown."""


@dataclass(frozen=True, kw_only=True)
class FilterInfo:
    """Counts of the training pairs of one task that were read and dropped."""

    read: int
    """Pairs before the first filter."""

    counts: Mapping[str, int]
    """{filter: pairs dropped}, in the order in which the filters were applied."""

    samples: Mapping[str, tuple[tuple[str, str], ...]]
    """{filter: the first pairs it dropped}."""


@dataclass(frozen=True, kw_only=True)
class SentenceInfo:
    """What training text has of the distinct sentences, of either side, of all dev sets or one test set."""

    sentences: int
    """Distinct sentences."""

    short: int
    """Sentences of fewer than `LeakConfig.min_words` words, whose copies n-grams do not find."""

    inside: int
    """Short sentences that stand whole inside a training sentence."""

    inside_ngrams: int
    """Those of `inside` with at least `LeakConfig.ngram_words` words, which a `min_words` as small finds."""


@dataclass(frozen=True, kw_only=True)
class CoverageInfo:
    """Fit of the vocabulary to one language."""

    tokens_per_word: float
    tokens_per_character: float
    byte_share: float
    """Share of tokens that encode one byte of a character without a piece."""

    unknown_share: float
    """Share of tokens that are unknown."""


@dataclass(frozen=True, kw_only=True)
class FileInfo:
    """Size and checksum of one file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class PreparedDescription:
    """The content of `prepared.json`."""

    schema: int = SCHEMA
    """Version of the format."""

    tasks: tuple[str, ...]
    """Tasks with training pairs."""

    zero_shot: tuple[str, ...] = ()
    """Tasks with dev and test sets and no training pairs."""

    vocabulary: VocabularyInfo = field(default_factory=VocabularyInfo)
    counts: Mapping[str, Mapping[str, SplitInfo]] = field(default_factory=dict)
    """{split: {task: its counts}}."""

    shards: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """{split: {task: the direction in which its shard is named and stored, its own or the opposite}}."""

    filters: Mapping[str, FilterInfo] = field(default_factory=dict)
    """{task: training pairs read and dropped}; text that both directions share stands under the first."""

    leaks: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """{task: {set: {rule: training pairs left out as copies of a sentence of the set}}}, of tasks as in
    `filters`; a pair counts for every set, by the first rule that finds it there."""

    dev_copies: Mapping[str, int] = field(default_factory=dict)
    """{task: pairs left out of its dev set because they are copies of test sentences}, without zeros."""

    sentences: Mapping[str, SentenceInfo] = field(default_factory=dict)
    """{set: how its sentences stand to the training text}; empty for synthetic languages."""

    warnings: tuple[str, ...] = ()
    """What may be wrong with the text, a line each."""

    coverage: Mapping[str, CoverageInfo] = field(default_factory=dict)
    """{language: how well the vocabulary suits it}."""

    config: Mapping[str, Any] = field(default_factory=dict)
    """The `[data]` section, every default written out."""

    files: Mapping[str, FileInfo] = field(default_factory=dict)
    """{path in the folder: size and checksum}."""

    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """{source, or setting that names a file: SHA-256 of each of its files}."""

    pairs_version: int = 0
    """Version of the pairs that the same inputs give; 0 where an earlier release prepared them."""

    study: str = ""
    """Name of the study."""

    irreducible: Mapping[str, float] = field(default_factory=dict)
    """{task: known irreducible loss in nats per token}."""

    power_law_limit: Mapping[str, float] = field(default_factory=dict)
    """{task: limit of the power law that its losses follow above `irreducible`, nats per token}, if known."""

    fingerprint: str = ""
    """Hash of the inputs and settings."""

    @classmethod
    def read(cls, folder: Path) -> PreparedDescription:
        """Read the description of a folder.

        Raises:
            DataError: If it is missing, was written by another version, or has changed since.
        """
        path = folder / DESCRIPTION
        if not path.is_file():
            raise DataError(f"{path}: no prepared data here; run `mnmt-data prepare` first.")
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            if (schema := table["schema"]) == SCHEMA:
                if table.pop(CHECKSUM, None) != _checksum(table):
                    raise changed(path)
                return structure(table, cls, where="prepared")
        except (ValueError, KeyError, TypeError, StructureError):
            raise DataError(
                f"{path}: does not describe prepared data; run `mnmt-data prepare` again."
            ) from None
        raise DataError(
            f"{path}: must have schema {SCHEMA}, but has {schema}; run `mnmt-data prepare` again."
        )

    def write(self, folder: Path) -> None:
        """Write the description into a folder."""
        table = asdict(self)
        write_json(folder / DESCRIPTION, {**table, CHECKSUM: _checksum(table)})


def _checksum(table: Mapping[str, Any]) -> str:
    """Compute the checksum of a description without its entry `checksum`."""
    return xxh3_64_hexdigest(json.dumps(table, sort_keys=True, default=str).encode())
