"""What a reader of translations should know of some of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

from mnmt_data.store import write_json
from mnmt_eval.errors import EvalError
from mnmt_eval.exclusive import hold
from mnmt_eval.translate.translation import FORMATS, Format, Translation
from mnmt_eval.translate.window import Line

_NAMED = 20
"""Lines that a remark names; of others it says how many."""


@dataclass(frozen=True, kw_only=True)
class SomeLines:
    """Lines of a text, of which the first are known by number: there may be millions."""

    first: Sequence[int] = ()
    """Numbers of the first of them."""

    count: int = 0
    """How many there are."""

    def and_also(self, numbers: Sequence[int]) -> SomeLines:
        """These and further ones, that come after them."""
        return SomeLines(first=[*self.first, *numbers][:_NAMED], count=self.count + len(numbers))

    def __str__(self) -> str:
        more = self.count - len(self.first)
        named = ", ".join(map(str, self.first))
        return f"line{'s' * (self.count > 1)} {named}" + (f" and {more:,} more" if more else "")


@dataclass(frozen=True, kw_only=True)
class Remarks:
    """Lines that were not translated as others are."""

    in_parts: SomeLines = field(default_factory=SomeLines)
    """Lines that were too long and translated in parts."""

    truncated: SomeLines = field(default_factory=SomeLines)
    """Lines whose translation the maximal length cut off."""

    @classmethod
    def read(cls, content: Mapping[str, Mapping[str, Any]]) -> Self:
        """What `asdict` made of some."""
        return cls(**{name: SomeLines(**lines) for name, lines in content.items()})

    def after(self, group: Iterable[tuple[Line, Translation]]) -> Remarks:
        """These, and those on further translations."""
        pairs = list(group)
        in_parts = [line.number for line, translation in pairs if translation.parts > 1]
        truncated = [line.number for line, translation in pairs if translation.truncated]
        return Remarks(
            in_parts=self.in_parts.and_also(in_parts), truncated=self.truncated.and_also(truncated)
        )

    def told(self, *, max_source: int | None) -> Iterator[str]:
        """The remarks, a line each."""
        if self.in_parts.count:
            yield f"longer than {max_source} tokens, so translated in parts: {self.in_parts}"
        if self.truncated.count:
            yield f"cut off at its maximal length, the translation of {self.truncated}"


Group = Sequence[tuple[Line, Translation]]


class Output(Protocol):
    """Where translations go."""

    @property
    def remarks(self) -> Remarks:
        """On all translations that are there."""
        ...

    def remaining(self, lines: Iterator[Line]) -> Iterator[Line]:
        """Those of `lines` of which the translations are not there yet."""
        ...

    def write(self, group: Group) -> None:
        """Add translations; once this returns, nothing that happens to the process can lose them."""
        ...


class StreamOutput:
    """A stream such as stdout.

    Args:
        stream: Takes bytes.
        form: How translations are written.
        name: What messages call it.
    """

    def __init__(self, stream: BinaryIO, form: Format, *, name: str) -> None:
        self._stream, self._form, self._name = stream, FORMATS[form], name
        self.remarks = Remarks()

    def remaining(self, lines: Iterator[Line]) -> Iterator[Line]:
        """All of them."""
        return lines

    def write(self, group: Group) -> None:
        """Write translations and flush them.

        Raises:
            OSError: Naming the stream; a BrokenPipeError if nobody reads it any more.
        """
        with _naming(self._name):
            self._stream.write(_written(group, self._form))
            self._stream.flush()
        self.remarks = self.remarks.after(group)


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """What `OUTPUT.record.json` says: how the output was made, and how far it has come."""

    made_with: Mapping[str, Any]
    """All that decides what a line's translation is, and how it is written."""

    lines: int = 0
    """Source lines of which the translations are there."""

    digest: str = ""
    """Of those lines."""

    bytes: int = 0
    """Length of the output; what comes after it was being written when the process was killed."""

    remarks: Remarks = field(default_factory=Remarks)


class FileOutput:
    """A file, and beside it a record that tells how far it has come and of which input.

    Args:
        path: The file; what is there is kept, if its record says that it was made in the same way.
        form: How translations are written.
        made_with: What decides what a line's translation is.

    Raises:
        EvalError: If there is something that was not made in the same way, or another process writes it.
        OSError: If the file cannot be written.
    """

    def __init__(self, path: Path, form: Format, made_with: Mapping[str, Any]) -> None:
        self._path, self._form = path, FORMATS[form]
        self._record_path = path.with_name(path.name + ".record.json")
        self._file = _opened(path)
        try:
            hold(self._file, str(path))
            self._record = self._begun({**made_with, "format": form})
        except BaseException:
            self._file.close()
            raise
        self._file.truncate(self._record.bytes)
        self._file.seek(self._record.bytes)
        self._keep(self._record)

    def close(self) -> None:
        """Close the file, without lines that an interruption kept from being counted."""
        with closing(self._file):
            self._file.truncate(self._record.bytes)

    @property
    def remarks(self) -> Remarks:
        """On all translations that are there."""
        return self._record.remarks

    @property
    def lines(self) -> int:
        """How many source lines have their translations there."""
        return self._record.lines

    def remaining(self, lines: Iterator[Line]) -> Iterator[Line]:
        """Those of `lines` of which the translations are not there yet.

        Raises:
            EvalError: If the others are not those that the file was made of.
        """
        last = Line(text="", target="")
        for line in islice(lines, self._record.lines):
            last = line
        if (last.number, last.digest) != (self._record.lines, self._record.digest):
            raise EvalError(
                f"{self._path}: holds translations of {self._record.lines} lines that do not begin this "
                "input; name another output, or remove it."
            )
        return lines

    def write(self, group: Group) -> None:
        """Add translations, on the disk before the record counts them."""
        if not group:
            return
        content = _written(group, self._form)
        with _naming(str(self._path)):
            self._file.write(content)
            self._file.flush()
            os.fsync(self._file.fileno())
        last, _ = group[-1]
        self._keep(
            replace(
                self._record,
                lines=last.number,
                digest=last.digest,
                bytes=self._record.bytes + len(content),
                remarks=self.remarks.after(group),
            )
        )

    def _keep(self, record: OutputRecord) -> None:
        # Interrupted in between, the record on the disk counts less than the file has, never more.
        self._record = record
        write_json(self._record_path, asdict(record))

    def _begun(self, made_with: Mapping[str, Any]) -> OutputRecord:
        """The record of what is there, or of nothing."""
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
            return OutputRecord(**{**content, "remarks": Remarks.read(content["remarks"])})
        except FileNotFoundError:
            raise EvalError(
                f"{self._path}: exists, and no {self._record_path.name} beside it says how it was made; "
                "name another output, or remove it."
            ) from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise EvalError(
                f"{self._record_path}: does not say how {self._path.name} was made; remove both."
            ) from None


def _opened(path: Path) -> BinaryIO:
    """The file, made if need be, with what it holds."""
    if path.exists() and not path.is_file():
        raise EvalError(f"{path}: is not a regular file; leave `--output` out and redirect stdout to it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("r+b" if path.exists() else "xb")


def _written(group: Group, form: Callable[[Line, Translation], str]) -> bytes:
    return "".join(form(line, translation) for line, translation in group).encode("utf-8")


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Put a name into what the system says of a failure."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None
