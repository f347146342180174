"""Study files: TOML whose sections become frozen dataclasses, each read by the package that owns it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any

from mnmt_data.errors import StudyError
from mnmt_data.study.structure import UNKNOWN, Config, StructureError, structure, unknown_key

SECTIONS = ("data", "model", "train", "sweep", "target")
KEYS = ("name", *SECTIONS)


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """A study as written: its name, and sections not yet checked."""

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
            return structure(self.tables.get(name, {}), config, where=name)
        except StructureError as error:
            raise StudyError(f"{self.path}: {error}") from error


def read_study(path: Path | str) -> StudyFile:
    """Read a study file.

    Raises:
        StudyError: The file is missing or not TOML, has no valid `name`, or holds an unknown top-level key.
    """
    path = Path(path)
    tables = _parse(path)
    unknown = sorted(tables.keys() - set(KEYS))
    if unknown:
        raise StudyError(f"{path}: {UNKNOWN} {unknown_key(unknown[0], KEYS)}")
    name = tables.pop("name", None)
    if not isinstance(name, str | NoneType) or not re.fullmatch(r"\w[\w.-]*", name or ""):
        raise StudyError(f"{path}: `name` must be a folder name such as 'en-de-small', but is {name!r}.")
    return StudyFile(path=path, name=str(name), tables=tables)


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"{path}: no such study file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: not a TOML file: {error}") from error


def _has_defaults(config: type) -> bool:
    return all(
        field.default is not MISSING or field.default_factory is not MISSING
        for field in fields(config)
        if field.init
    )
