"""Outputs of translations: a stream, or a file that an interrupted command resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

from mnmt_data.store import file_lock, write_json
from mnmt_eval.errors import EvalError
from mnmt_eval.translate.lines import SourceLine
from mnmt_eval.translate.translation import FORMATS, Format, Translation

TranslatedLines = Sequence[tuple[SourceLine, Translation]]

_MAX_LISTED = 20
"""The number of lines that a remark lists; it counts the others."""


@dataclass(frozen=True, kw_only=True)
class LineNumbers:
    """The first few line numbers, and their count, which may be in the millions."""

    first: Sequence[int] = ()
    count: int = 0

    def extend(self, numbers: Sequence[int]) -> LineNumbers:
        """Return these and further numbers, which come after them."""
        return LineNumbers(first=[*self.first, *numbers][:_MAX_LISTED], count=self.count + len(numbers))

    def __str__(self) -> str:
        more = self.count - len(self.first)
        listed = ", ".join(map(str, self.first))
        return f"line{'s' * (self.count > 1)} {listed}" + (f" and {more:,} more" if more else "")


@dataclass(frozen=True, kw_only=True)
class Remarks:
    """The lines that were translated in parts or cut off."""

    in_parts: LineNumbers = field(default_factory=LineNumbers)
    """Lines that were too long and translated in parts."""
    truncated: LineNumbers = field(default_factory=LineNumbers)
    """Lines whose translation the maximal length cut off."""

    @classmethod
    def from_dict(cls, content: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return the remarks that `asdict` turned into `content`."""
        return cls(**{name: LineNumbers(**lines) for name, lines in content.items()})

    def extend(self, lines: Iterable[tuple[SourceLine, Translation]]) -> Remarks:
        """Return these remarks and those on further translations."""
        pairs = list(lines)
        in_parts = [line.number for line, translation in pairs if translation.parts > 1]
        truncated = [line.number for line, translation in pairs if translation.truncated]
        return Remarks(
            in_parts=self.in_parts.extend(in_parts),
            truncated=self.truncated.extend(truncated),
        )

    def messages(self, *, max_source: int | None) -> Iterator[str]:
        """Yield a message for each kind of remark."""
        if self.in_parts.count:
            yield f"longer than {max_source} tokens, so translated in parts: {self.in_parts}"
        if self.truncated.count:
            yield f"cut off at its maximal length, the translation of {self.truncated}"


class Output(Protocol):
    """A place that translations are written to."""

    @property
    def remarks(self) -> Remarks:
        """The remarks on all translations that were written."""
        ...

    def skip_written(self, lines: Iterator[SourceLine]) -> Iterator[SourceLine]:
        """Return the rest of `lines`, after those whose translations are written already."""
        ...

    def write(self, lines: TranslatedLines) -> None:
        """Write translations; once this returns, killing the process does not lose them."""
        ...


class StreamOutput:
    """A stream such as stdout.

    Args:
        stream: A stream of bytes.
        form: The format of translations.
        name: The stream's name in messages.
    """

    def __init__(self, stream: BinaryIO, form: Format, *, name: str) -> None:
        self._stream, self._form, self._name = stream, FORMATS[form], name
        self.remarks = Remarks()

    def skip_written(self, lines: Iterator[SourceLine]) -> Iterator[SourceLine]:
        """Return all lines."""
        return lines

    def write(self, lines: TranslatedLines) -> None:
        """Write translations and flush them.

        Raises:
            OSError: If the stream cannot be written; a BrokenPipeError if its reader has ended.
        """
        with _name_in_errors(self._name):
            self._stream.write(_encode(lines, self._form))
            self._stream.flush()
        self.remarks = self.remarks.extend(lines)


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """The contents of `OUTPUT.record.json`: the settings of the output, and its progress."""

    made_with: Mapping[str, Any]
    """Every setting that changes a line's translation or its format."""
    lines: int = 0
    """The number of source lines whose translations are written."""
    digest: str = ""
    """The digest of those lines."""
    bytes: int = 0
    """The length of the output; bytes after it are from a write that was interrupted."""
    remarks: Remarks = field(default_factory=Remarks)


class FileOutput:
    """A file of translations, and beside it a record of its input and progress.

    Translations are on the disk before the record counts them, so that an interrupted command resumes after
    the last that was counted. No other process may write the file at the same time, see `open_file_output`.

    Args:
        path: The file; its contents stay if its record has the same settings.
        form: The format of translations.
        made_with: Every setting that changes a line's translation.

    Raises:
        EvalError: If the file was made with other settings.
        OSError: If the file cannot be written.
    """

    def __init__(self, path: Path, form: Format, made_with: Mapping[str, Any]) -> None:
        self._path, self._form = path, FORMATS[form]
        self._record_path = record_path(path)
        self._file = _open(path)
        try:
            self._record = self._resume({**made_with, "format": form})
        except BaseException:
            self._file.close()
            raise
        self._file.truncate(self._record.bytes)
        self._file.seek(self._record.bytes)
        self._save(self._record)

    def close(self) -> None:
        """Close the file, without lines that an interruption left uncounted."""
        with closing(self._file):
            self._file.truncate(self._record.bytes)

    @property
    def remarks(self) -> Remarks:
        """The remarks on all translations that were written."""
        return self._record.remarks

    @property
    def lines(self) -> int:
        """The number of source lines whose translations are written."""
        return self._record.lines

    def skip_written(self, lines: Iterator[SourceLine]) -> Iterator[SourceLine]:
        """Return the rest of `lines`, after those whose translations are written already.

        Raises:
            EvalError: If the file was made of other lines.
        """
        last = SourceLine(text="", target="")
        for line in islice(lines, self._record.lines):
            last = line
        if (last.number, last.digest) != (self._record.lines, self._record.digest):
            raise EvalError(
                f"{self._path}: holds translations of {self._record.lines} lines that do not begin this "
                "input; name another output, or remove it."
            )
        return lines

    def write(self, lines: TranslatedLines) -> None:
        """Write translations to the disk, and then count them in the record."""
        if not lines:
            return
        content = _encode(lines, self._form)
        with _name_in_errors(str(self._path)):
            self._file.write(content)
            self._file.flush()
            os.fsync(self._file.fileno())
        last, _ = lines[-1]
        self._save(
            replace(
                self._record,
                lines=last.number,
                digest=last.digest,
                bytes=self._record.bytes + len(content),
                remarks=self.remarks.extend(lines),
            )
        )

    def _save(self, record: OutputRecord) -> None:
        # Interrupted in between, the record on the disk counts less than the file has, never more.
        self._record = record
        write_json(self._record_path, asdict(record))

    def _resume(self, made_with: Mapping[str, Any]) -> OutputRecord:
        """Return the record of the file, or an empty one for an empty file."""
        if not self._path.stat().st_size:
            return OutputRecord(made_with=made_with)
        record = self._read_record()
        for name, value in made_with.items():
            if (before := record.made_with.get(name)) != value:
                raise EvalError(
                    f"{self._path}: was made with {name} {before}, and is now asked for with {value}; "
                    "name another output, or remove it."
                )
        if self._path.stat().st_size < record.bytes:
            raise EvalError(f"{self._path}: is shorter than it was when it was written; remove it.")
        return record

    def _read_record(self) -> OutputRecord:
        try:
            content = json.loads(self._record_path.read_text(encoding="utf-8"))
            return OutputRecord(**{**content, "remarks": Remarks.from_dict(content["remarks"])})
        except FileNotFoundError:
            raise EvalError(
                f"{self._path}: exists, and no {self._record_path.name} beside it says how it was made; "
                "name another output, or remove it."
            ) from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise EvalError(
                f"{self._record_path}: does not say how {self._path.name} was made; remove both."
            ) from None


@contextmanager
def open_file_output(path: Path, form: Format, made_with: Mapping[str, Any]) -> Iterator[FileOutput]:
    """Open a file output, and keep other processes from opening it until the block ends.

    Args:
        path: The file.
        form: The format of translations.
        made_with: Every setting that changes a line's translation.

    Raises:
        EvalError: If the file was made with other settings, or another process writes it.
        OSError: If the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    with file_lock(lock, name=path, error=EvalError):
        try:
            with closing(FileOutput(path, form, made_with)) as output:
                yield output
        finally:
            lock.unlink()


def record_path(path: Path) -> Path:
    """Return the path of a file output's record."""
    return path.with_name(path.name + ".record.json")


def _open(path: Path) -> BinaryIO:
    """Open the file with its contents; create it if it does not exist."""
    if path.exists() and not path.is_file():
        raise EvalError(f"{path}: is not a regular file; leave `--out` out and redirect stdout to it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("r+b" if path.exists() else "xb")


def _encode(lines: TranslatedLines, form: Callable[[SourceLine, Translation], str]) -> bytes:
    return "".join(form(line, translation) for line, translation in lines).encode("utf-8")


@contextmanager
def _name_in_errors(name: str) -> Iterator[None]:
    """Name the output in the system's errors."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None
