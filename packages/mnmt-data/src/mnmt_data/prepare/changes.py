"""The differences between a study's `[data]` and the prepared data: settings, and the text that they name."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.prepare.checksums import ChecksumCache
from mnmt_data.prepare.config import DEV_AND_TEST, DataConfig
from mnmt_data.prepare.inputs import Inputs, find_inputs
from mnmt_data.prepare.stages import Stages
from mnmt_data.store.prepared import PreparedData
from mnmt_data.study import StructureError, StudyFile, structure

logger = logging.getLogger(__name__)

TEXT = ("corpus", "files", "test_corpora")
"""Settings that name text, which may move."""

INPUT_FILES = ("vocab.path", "clean.language_id_model")
"""Settings that name other files, which may move."""

SPLITS = ("train", *DEV_AND_TEST)

DIGESTS = ".data.digests.json"
"""Name of the file of remembered checksums."""

_NO_EFFECT_WITH_PATH = tuple(
    f"vocab.{name}"
    for name in ("kind", "size", "temperature", "sentences", "byte_fallback", "character_coverage")
)
_LONGEST_VALUE = 60

Digests = Mapping[str, tuple[str, ...]]
"""{source, or setting that names a file: SHA-256 of each of its files}."""


@dataclass(frozen=True)
class Change:
    """A setting of `[data]` with another value than the data were prepared with."""

    key: str
    """The setting, such as `vocab.size`."""
    old: Any
    new: Any

    @property
    def setting(self) -> str:
        """The setting as a message names it: "[data.vocab] `size`"."""
        table, _, name = f"data.{self.key}".rpartition(".")
        return f"[{table}] `{name}`"

    @property
    def values(self) -> tuple[str, str]:
        """The old and the new value as TOML has them, shortened."""
        return _as_toml(self.old), _as_toml(self.new)

    def __str__(self) -> str:
        old, new = self.values
        return f"{self.setting} was {old} and is {new}"

    @property
    def is_of_a_test_set(self) -> bool:
        """Whether it concerns only test sets beside dev and test."""
        return self.key.startswith(("test_corpora.", "files.")) and self.key.split(".")[1] not in SPLITS


def check_prepared(study: StudyFile, data: PreparedData) -> None:
    """Check that the `[data]` section of a study is that of its prepared data.

    Settings without effect on the data may differ, and paths, if the same files are there now. A study
    without the section has nothing to compare.

    Raises:
        StudyError: If the section has a mistake.
        DataError: If a setting has changed; the message names it and both values.
    """
    old = data.description.config
    if "data" not in study.tables or not old:
        return
    config = study.section("data", DataConfig)
    changes = setting_changes(old, config)
    names_files = any(_names_files(change.key) for change in changes)
    others = _other_files(config, data) if names_files and data.description.inputs else set()
    for change in changes:
        if None in (change.old, change.new) or _is_other(change, others):
            before, now = change.values
            what = f"{change.setting} is {now}, but {data.folder} was prepared with {before}"
            remedy = f"make it {before}, or prepare again, with another --out to keep the runs on those data"
            raise DataError(f"{study.path}: {what}; {remedy}.")


def first_change(old: Mapping[str, Any], config: DataConfig, others: Collection[str]) -> str | None:
    """Return the first setting of the `[data]` section `old` that has changed, as a message says it.

    A path that has changed counts only if other files are there.

    Args:
        old: The section as prepared.json has it.
        config: The section of a study.
        others: Names of the files that differ, see `differences`.
    """
    return next((str(change) for change in setting_changes(old, config) if _is_other(change, others)), None)


def differences(before: Mapping[str, Iterable[str]], now: Digests) -> set[str]:
    """Return the names whose files differ between two records of checksums."""
    return {name for name in {*before, *now} if tuple(before.get(name, ())) != now.get(name, ())}


def recorded_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return the settings that differ between two `[data]` sections of prepared data, paths left out.

    It is empty if another release wrote the new one.
    """
    try:
        changes = setting_changes(old, structure(new, DataConfig, where="data"))
    except StructureError:
        return []
    return [change for change in changes if not _names_files(change.key)]


def setting_changes(old: Mapping[str, Any], new: DataConfig) -> list[Change]:
    """Return the settings that differ and shape the data; one that `old` lacks had its default.

    Args:
        old: The `[data]` section as prepared.json has it.
        new: The section of a study.
    """
    idle = set(_idle_settings(new))
    return [change for change in _changes(old, new, "") if change.key not in idle]


def input_digests(config: DataConfig, inputs: Inputs, checksums: ChecksumCache) -> Digests:
    """Return the checksums of all files that a study reads.

    Synthetic text is left out, since its settings say all of it.
    """
    named = [] if config.synthetic is not None else list(inputs.paths)
    return _digests([*named, *_other_inputs(config)], checksums)


def _other_inputs(config: DataConfig) -> Iterator[tuple[str, Path]]:
    paths = zip(INPUT_FILES, (config.vocab.path, config.clean.language_id_model), strict=True)
    return ((name, path) for name, path in paths if path is not None)


def _digests(named: Collection[tuple[str, Path]], checksums: ChecksumCache) -> dict[str, tuple[str, ...]]:
    digests: dict[str, tuple[str, ...]] = {}
    sums = checksums.of(path for _, path in named)
    for name, path in named:
        digests[name] = (*digests.get(name, ()), sums[path])
    return digests


def _other_files(config: DataConfig, data: PreparedData) -> set[str]:
    """Return names of `input_digests` whose files differ; none, with a warning, if any is gone."""
    checksums = ChecksumCache(data.folder.parent / DIGESTS, Stages())
    try:
        now = input_digests(config, find_inputs(config, config.corpus), checksums)
    except (DataError, OSError) as error:
        logger.warning("text not compared with %s: %s", data.folder, error)
        return set()
    with suppress(OSError):
        checksums.save()
    return differences(data.description.inputs, now)


def _idle_settings(config: DataConfig) -> Iterator[str]:
    """Yield settings that do not matter to the data, given the others."""
    yield "max_bad_share"
    if config.vocab.path is not None:
        yield from _NO_EFFECT_WITH_PATH
    if config.synthetic is not None:
        yield from ("dev_sentences", "on_bad_line")
        yield from (f"leaks.{field.name}" for field in fields(config.leaks))
        if not config.test_corpora:
            yield "test_sentences"


def _changes(old: Any, new: Any, key: str) -> Iterator[Change]:
    """Yield the differences between a value of prepared.json and the same of a study."""
    prefix = f"{key}." if key else ""
    if is_dataclass(new) and isinstance(old, Mapping):
        for field in fields(new):
            value = getattr(new, field.name)
            yield from _changes(old.get(field.name, _default(field)), value, f"{prefix}{field.name}")
    elif isinstance(new, Mapping) and isinstance(old, Mapping):
        for name in dict.fromkeys((*old, *new)):
            yield from _changes(old.get(name), new.get(name), f"{prefix}{name}")
    elif _plain(old) != _plain(new):
        yield Change(key, _plain(old), _plain(new))


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _as_toml(value: Any) -> str:
    """Return a value about as TOML writes it, and the ends of a long array or table."""
    if value is None:
        return "none"
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) or len(text) <= _LONGEST_VALUE:
        return text
    return f"{text[: _LONGEST_VALUE // 3]}…{text[-_LONGEST_VALUE * 2 // 3 :]}"


def _names_files(key: str) -> bool:
    return key.partition(".")[0] in TEXT or key in INPUT_FILES


def _is_other(change: Change, others: Collection[str]) -> bool:
    """Return whether a setting has another value, or names files that differ."""
    if not _names_files(change.key):
        return True
    return any(_concerns(change.key, name) for name in others)


def _concerns(key: str, name: str) -> bool:
    """Return whether a setting can name a file: `files.dev.en-de` that of `dev.en-de.000`."""
    if key in INPUT_FILES or name in INPUT_FILES:
        return key == name
    place = key.partition(".")[2]
    return name.startswith(f"{place}.") if place else name.partition(".")[0] in SPLITS
