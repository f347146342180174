"""The installed packages that read a study; each registers its sections and its checks by entry points."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, get_args, get_type_hints

_log = logging.getLogger(__name__)

SECTION_GROUP = "mnmt.study_sections"
"""Group of entry points `section = "module:Dataclass"`."""

CHECK_GROUP = "mnmt.study_checks"
"""Group of entry points `name = "module:function"`: functions that check several sections together. They get
a `StudyFile`, and raise `StudyError`."""

NEW_RUNS_GROUP = "mnmt.new_runs"
"""Group of entry points `name = "module:function"`: a function that chooses the runs of a new study. It gets
a `StudyFile` of `[data]`, its prepared data or a part of them, `shares` and `seconds`; returns `NewRuns`."""


@dataclass(frozen=True, kw_only=True)
class NewRuns:
    """The runs of a new study."""

    tables: Mapping[str, Any]
    """{section: its table}."""

    count: int
    """Number of runs."""

    sizes: tuple[int, ...]
    """N of each size, ascending."""

    steps: int
    """Steps of the longest runs."""

    seconds: float
    """Expected time of training."""


def new_runs_chooser() -> Callable[..., NewRuns] | None:
    """Return the function that chooses the runs of a new study; None if no installed package has one."""
    return next((chooser for _, chooser in _load(NEW_RUNS_GROUP)), None)


@cache
def section_configs() -> dict[str, type]:
    """Return {section: its dataclass}, of the installed packages."""
    return dict(_load(SECTION_GROUP))


@cache
def study_checks() -> tuple[Callable[[Any], None], ...]:
    """Return the checks of the installed packages, by name."""
    return tuple(check for _, check in _load(CHECK_GROUP))


def _load(group: str) -> Iterator[tuple[str, Any]]:
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            yield entry.name, entry.load()
        except Exception:  # a package that is broken, or older than its metadata, counts as not installed
            _log.info("%s of %s is left out", entry.value, group, exc_info=True)


def owners_of(key: str) -> list[str]:
    """Return the tables that have a key, such as `[train]`; a section belongs to the file."""
    if key in section_configs():
        return [f"the file, as the section [{key}]"]
    configs = section_configs().items()
    places = (where for name, config in configs for where in _with_key(key, name, config))
    return list(dict.fromkeys(f"[{where}" for where in places))


def _with_key(key: str, where: str, config: type) -> Iterator[str]:
    hints = get_type_hints(config)
    if key in {field.name for field in fields(config) if field.init}:
        kinds = get_args(hints.get("kind"))
        yield f'{where}] of kind "{kinds[0]}"' if len(kinds) == 1 else f"{where}]"
    for name, hint in hints.items():
        for table in _tables_of(hint):
            yield from _with_key(key, f"{where}.{name}", table)


def _tables_of(hint: Any) -> Iterator[type]:
    """Yield the dataclasses in a type."""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for argument in get_args(hint):
        yield from _tables_of(argument)
