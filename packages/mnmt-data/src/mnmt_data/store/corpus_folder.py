"""Corpus folders: `TESTSET.SRC-TGT.SRC` and `.TGT`, one sentence on each line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.errors import DataError, folder_holds
from mnmt_data.store.atomic_file import atomic_file

DESCRIPTION = "corpus.json"
"""Provenance, counts, checksums and irreducible losses of a corpus folder, where they are known."""


@dataclass(frozen=True, kw_only=True)
class Bitext:
    """Sentence pairs of one task."""

    src: list[str]
    tgt: list[str]

    def __len__(self) -> int:
        return len(self.src)

    def take(self, rows: Sequence[int]) -> Bitext:
        """Return the pairs of the given rows."""
        return Bitext(src=[self.src[row] for row in rows], tgt=[self.tgt[row] for row in rows])


def bitext_paths(folder: Path, testset: str, task: str) -> tuple[Path, Path]:
    """Return the source and the target file of a test set and task.

    Text named for the opposite direction serves where there is no other: `train.en-de` holds `de-en` as well.
    """
    src, tgt = task.split("-")
    paths = _paths_named(folder, testset, task)
    opposite = _paths_named(folder, testset, f"{tgt}-{src}")[::-1]
    return opposite if not _any_exists(paths) and _any_exists(opposite) else paths


def weights_path(folder: Path, testset: str, task: str) -> Path:
    """Return the path of a test set's weights, one number a line; only some corpora have it."""
    return folder / f"{testset}.{task}.weights"


def _paths_named(folder: Path, testset: str, task: str) -> tuple[Path, Path]:
    src, tgt = task.split("-")
    return folder / f"{testset}.{task}.{src}", folder / f"{testset}.{task}.{tgt}"


def _any_exists(paths: tuple[Path, Path]) -> bool:
    return any(path.exists() for path in paths)


def read_bitext(folder: Path, testset: str, task: str) -> Bitext:
    """Read the pairs of a test set and task.

    Raises:
        DataError: If a file is missing, empty or not UTF-8, or the two differ in number of lines.
    """
    paths = bitext_paths(folder, testset, task)
    src, tgt = (read_lines(path) for path in paths)
    if len(src) != len(tgt):
        counts = f"{len(src)} lines, but {paths[1]} has {len(tgt)}"
        raise DataError(f"{paths[0]}: has {counts}; both must have one sentence a line, in the same order.")
    if not src:
        raise DataError(f"{paths[0]}: has no lines; give at least one sentence pair.")
    return Bitext(src=src, tgt=tgt)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file, cut only at newlines, without byte-order mark and carriage returns.

    Raises:
        DataError: If the file is missing or not UTF-8; the message names the line.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; a task needs both sides; {folder_holds(path)}.") from None
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: not valid UTF-8; convert the file to UTF-8.") from None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def write_bitext(
    folder: Path, testset: str, task: str, bitext: Bitext, *, replace_opposite: bool = True
) -> None:
    """Write the two files of a test set and task, each of which appears whole or not at all.

    Args:
        folder: The corpus folder.
        testset: The test set.
        task: The task.
        bitext: The pairs.
        replace_opposite: Whether to write to the files of the opposite direction where these exist; False
            where processes write both directions at the same time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = (bitext_paths if replace_opposite else _paths_named)(folder, testset, task)
    for path, lines in zip(paths, (bitext.src, bitext.tgt), strict=True):
        with atomic_file(path) as file:
            file.write("".join(line + "\n" for line in lines).encode())
