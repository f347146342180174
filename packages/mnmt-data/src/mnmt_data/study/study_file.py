"""Study files: TOML whose sections become frozen dataclasses, each read by the package that owns it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from mnmt_data.errors import StudyError
from mnmt_data.study.sections import owners_of, section_configs, study_checks
from mnmt_data.study.structure import UNKNOWN, Config, StructureError, structure, unknown_key

NAME = r"\w[\w.-]*"
"""Pattern of the names of studies, which are names of folders."""

SECTIONS = ("data", "model", "train", "sweep", "goal")
"""Sections of the packages of this repository, which need not be installed."""


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """A study as written: its name and sections."""

    path: Path
    """The TOML file."""

    name: str
    """Name of the study and of its folder under ``results/``."""

    tables: Mapping[str, Any]
    """{section: its table}."""

    def section(self, name: str, config: type[Config]) -> Config:
        """Return the section `name` as the dataclass `config`.

        An absent section is `config()` if all its fields have defaults.

        Raises:
            StudyError: Naming file, section and key: the section is missing, a key is unknown or missing, a
                value has the wrong type or is refused by the dataclass.
        """
        if name not in self.tables and not _has_defaults(config):
            raise StudyError(f"{self.path}: section [{name}] is missing.")
        try:
            return structure(self.tables.get(name, {}), config, where=name, owners=owners_of)
        except StructureError as error:
            raise StudyError(f"{self.path}: {error}") from error

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The sections whose package is not installed."""
        return tuple(name for name in self.tables if name not in section_configs())

    def check(self) -> None:
        """Check all sections that an installed package reads, and what concerns several of them.

        Raises:
            StudyError: Naming file, section and key of the first mistake.
        """
        for name, config in section_configs().items():
            if name in self.tables:
                self.section(name, config)
        for check in study_checks():
            check(self)


def read_study(path: Path | str) -> StudyFile:
    """Read a study file, and check it with all installed packages.

    Raises:
        StudyError: The file is missing or not TOML, has no valid `name`, or has a mistake in a section.
    """
    path = Path(path)
    tables = _parse(path)
    for text in _strings(tables):
        if any(ord(character) < ord(" ") for character in text):
            remedy = "write it in '…', where a backslash is no escape"
            raise StudyError(f"{path}: {text!r} holds a tab or another control character; {remedy}.")
    valid = tuple(dict.fromkeys(("name", *SECTIONS, *section_configs())))
    if unknown := sorted(tables.keys() - set(valid)):
        raise StudyError(f"{path}: {UNKNOWN} {unknown_key(unknown[0], valid, owners_of)}")
    if "name" not in tables:
        raise StudyError(f"{path}: `name` must be given, before the first section: name = 'en-de-small'.")
    name = tables.pop("name")
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        raise StudyError(f"{path}: `name` must be a folder name such as 'en-de-small', but is {name!r}.")
    study = StudyFile(path=path, name=name, tables=tables)
    study.check()
    return study


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise StudyError(f"{path}: no such study file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: not a TOML file: {error}") from error


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from _strings(child)


def _has_defaults(config: type) -> bool:
    return all(
        field.default is not MISSING or field.default_factory is not MISSING
        for field in fields(config)
        if field.init
    )
