"""Readers and filters that other distributions offer as entry points."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Self

from mnmt_data.errors import DataError
from mnmt_data.readers.reader import Block, Choice, Reader, every_block

READERS = "mnmt_data.readers"
"""Group of entry points that open readers. A name with a dot in front is the ending of a file's name, and its
callable takes `(Path, task)`; any other is what a source begins with, before a colon, and its callable takes
`(source, task)`. It gives a `Reader` of at least one path, in the direction of the task."""

FILTERS = "mnmt_data.filters"
"""Group of entry points whose callables take `(settings, task, languages)` and give a `PairFilter`."""


@dataclass(frozen=True)
class Plugin:
    """A reader or filter of another distribution."""

    entry_point: EntryPoint

    @property
    def origin(self) -> str:
        """Name and version of the distribution, such as `acme-text 1.2`."""
        distribution = self.entry_point.dist
        return f"{distribution.name} {distribution.version}" if distribution else "an unknown distribution"

    def load(self) -> Callable[..., Any]:
        """Import the callable.

        Raises:
            DataError: If that fails, whatever for.
        """
        try:
            return self.entry_point.load()  # type: ignore[no-any-return]
        except Exception as error:
            reason = (str(error) or type(error).__name__).partition("\n")[0]
            raise DataError(f"{self} cannot be loaded ({reason}); mend or uninstall it.") from error

    def __str__(self) -> str:
        point = self.entry_point
        return f"{point.group}: `{point.name} = {point.value}` of {self.origin}"


def plugin_names(group: str) -> list[str]:
    """Return the names of the installed plugins of a group."""
    return sorted({point.name for point in _entry_points(group, tuple(sys.path))})


def find_plugin(group: str, name: str, *, built_in: bool = False) -> Plugin | None:
    """Return the plugin of a name, or None.

    Args:
        group: `READERS` or `FILTERS`.
        name: Its name.
        built_in: Whether mnmt-data itself has the name.

    Raises:
        DataError: If there are several, or one where mnmt-data has its own.
    """
    plugins = [Plugin(point) for point in _entry_points(group, tuple(sys.path)) if point.name == name]
    if len(plugins) + built_in > 1:
        others = " and ".join([*(["mnmt-data"] if built_in else []), *(plugin.origin for plugin in plugins)])
        raise DataError(f"{group}: `{name}` is offered by {others}; uninstall all but one.")
    return plugins[0] if plugins else None


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group; `path` is where Python looks, which may change."""
    return tuple(entry_points(group=group))


@dataclass(frozen=True, kw_only=True)
class PluginReader:
    """A reader of another distribution, whose blocks are checked."""

    reader: Reader
    origin: str
    """Name and version of the distribution."""

    @classmethod
    def open(cls, plugin: Plugin, source: Path | str, task: str) -> Self:
        """Open a source with the plugin's callable.

        Raises:
            DataError: If it cannot be loaded, or opens a reader of no files.
        """
        reader = plugin.load()(source, task)
        if not reader.paths:
            raise DataError(
                f"{source}: the reader of {plugin.origin} has no `paths`; it must have at least one."
            )
        return cls(reader=reader, origin=plugin.origin)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return self.reader.paths

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield the reader's blocks.

        Args:
            skip_bad: Whether lines that cannot be read are listed in the blocks and not refused.
            choice: Which blocks are wanted; all are read.

        Raises:
            DataError: What the reader raises; or if a block has unequal sides, or does not follow the last.
        """
        first = 0
        for number, block in enumerate(filter(len, self._read(skip_bad=skip_bad))):
            if len(block.src) != len(block.tgt) or block.first != first:
                sides = f"{len(block.src)} and {len(block.tgt)} sentences from {block.first} on"
                expected = f"must have as many of both, from {first} on"
                raise DataError(f"{self.paths[0]}: {self.origin} gave a block of {sides}; it {expected}.")
            first += len(block)
            yield block if choice(number) else Block(src=[], tgt=[], first=block.first)

    def _read(self, *, skip_bad: bool) -> Iterator[Block]:
        """Yield the reader's blocks; name it in the traceback of what it raises."""
        try:
            yield from self.reader.blocks(skip_bad=skip_bad)
        except Exception as error:
            error.add_note(f"The reader is that of {self.origin}.")
            raise
