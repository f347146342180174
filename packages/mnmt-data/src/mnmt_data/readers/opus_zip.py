"""Zip archives as OPUS gives them: two texts in the Moses convention, or one TMX file."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import ZipMember, members
from mnmt_data.readers.language_codes import best_tags, languages, opposite, serves
from mnmt_data.readers.reader import Reader
from mnmt_data.readers.text_pairs import TextPairs
from mnmt_data.readers.tmx import tmx_pairs


def open_zip(path: Path, task: str) -> Reader:
    """Open a reader of the text in an archive, which is streamed without unpacking it.

    Members `CORPUS.SRC-TGT.SRC` and `CORPUS.SRC-TGT.TGT`, the pair in either order, precede a TMX file.

    Raises:
        DataError: If the archive is missing or damaged, a member's name leads out of it, or it holds neither
            exactly one Moses pair of the task nor exactly one TMX file.
    """
    names = members(path)
    _check_stays_inside(path, names)
    texts = [name for name in names if _pair_of(name, task)]
    if texts:
        return _text_pairs(path, task, texts)
    memories = [name for name in names if name.lower().endswith(".tmx")]
    if len(memories) != 1:
        raise DataError(f"{path}: {_not_one(names, memories, task)}.")
    return tmx_pairs(ZipMember(path, memories[0]), task)


def _text_pairs(path: Path, task: str, texts: list[str]) -> TextPairs:
    tags = {name.rpartition(".")[2]: name for name in texts}
    sides = best_tags(tuple(tags), task, str(path))
    if len(texts) != 2 or sides is None:
        remedy = f"give an archive with one pair of texts for {task}"
        raise DataError(f"{path}: holds {', '.join(sorted(texts))}; {remedy}.")
    src, tgt = (ZipMember(path, tags[side]) for side in sides)
    return TextPairs(task=task, src=src, tgt=tgt)


def _pair_of(name: str, task: str) -> bool:
    """Return whether a member's name ends in `.SRC-TGT.SRC` or the like, in any spelling of the languages."""
    parts = PurePosixPath(name).name.rsplit(".", 2)
    if len(parts) < 3 or parts[1].count("-") != 1:
        return False
    pair = parts[1].split("-")
    directions = (languages(task), languages(opposite(task)))
    fits = any(all(map(serves, pair, direction)) for direction in directions)
    return fits and any(serves(parts[2], code) for code in languages(task))


def _check_stays_inside(path: Path, names: list[str]) -> None:
    for name in names:
        windows = PureWindowsPath(name)  # both kinds of slash, and drives
        if windows.anchor or ".." in windows.parts:
            raise DataError(f"{path}: the member {name!r} leads out of the archive; do not trust it.")


def _not_one(names: list[str], memories: list[str], task: str) -> str:
    listed = ", ".join(sorted(names)[:8]) or "nothing"
    several = f"{len(memories)} TMX files" if memories else f"no texts of {task} and no TMX file"
    return f"has {several}, but must have one pair of texts or one TMX file; it holds {listed}"
