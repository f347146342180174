"""Groups of a test set's pairs that are scored separately: by original language, and by length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file

_UNSPACED = (
    *("bo", "bod", "cmn", "dz", "dzo", "ja", "jpn", "khm", "km", "lao", "lo", "my", "mya"),
    *("shn", "th", "tha", "wuu", "yue", "zh", "zho"),
)
"""Languages that put no space between words: their length is counted in characters."""

LENGTHS_IN_WORDS = (0, 10, 20, 30, 40, 50)
LENGTHS_IN_CHARACTERS = (0, 20, 40, 60, 80, 100)

_HEADER = "origin\tlength"


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The groups that each pair of a test set is in."""

    origins: list[str]
    """The language each pair was written in; `""` where it is unknown."""

    lengths: list[int]
    """Lower bound of the length group of each source: 10 for 10 to 19 words."""

    @classmethod
    def of(cls, src: Sequence[str], *, origins: list[str], language: str) -> Self:
        """Group pairs by their source sentences, in `language`."""
        lengths, bounds = count_lengths(src, language=language)
        return cls(origins=origins, lengths=[_least(bounds, length) for length in lengths])


def count_lengths(src: Sequence[str], *, language: str) -> tuple[list[int], tuple[int, ...]]:
    """Return the lengths of sentences, in words or in characters, and the lower bound of each group."""
    if language.partition("_")[0].lower() in _UNSPACED:
        return [len(line) for line in src], LENGTHS_IN_CHARACTERS
    return [len(line.split()) for line in src], LENGTHS_IN_WORDS


def groups_path(folder: Path, testset: str, task: str) -> Path:
    """Return the path of the groups of a test set and task, in the folder of its text."""
    return folder / f"{testset}.{task}.groups.tsv"


def write_groups(folder: Path, testset: str, task: str, groups: Groups) -> None:
    """Write a line for each pair, below a header: origin, tab, length."""
    pairs = zip(groups.origins, groups.lengths, strict=True)
    lines = [_HEADER, *(f"{origin}\t{length}" for origin, length in pairs)]
    with atomic_file(groups_path(folder, testset, task)) as file:
        file.write("".join(line + "\n" for line in lines).encode())


def read_groups(folder: Path, testset: str, task: str) -> Groups | None:
    """Read the groups of a test set and task; None if there is no file.

    Raises:
        DataError: If a line is malformed; the message names it.
    """
    path = groups_path(folder, testset, task)
    if not path.is_file():
        return None
    header, *lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    if header != _HEADER:
        raise DataError(f"{path}:1: must be {_HEADER!r}, but is {header!r}; remove it and prepare again.")
    groups = Groups(origins=[], lengths=[])
    for number, line in enumerate(lines, start=2):
        origin, _, length = line.partition("\t")
        if not length.isdecimal():
            raise DataError(
                f"{path}:{number}: must end with a length, but is {line!r}; remove it and prepare again."
            )
        groups.origins.append(origin)
        groups.lengths.append(int(length))
    return groups


def _least(bounds: Sequence[int], length: int) -> int:
    return max(bound for bound in bounds if bound <= length)
