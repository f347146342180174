"""Source lines, how they are read, and the vocabulary that encodes them."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mnmt_data import DataError
from mnmt_eval.errors import EvalError
from mnmt_eval.text import decode_line

if TYPE_CHECKING:
    from mnmt_data import Ragged

_INVISIBLE = ("Zs", "Zl", "Zp", "Cc", "Cf")
"""Unicode's categories of characters that leave no ink."""

TargetOf = Callable[[str], str]
"""The target language of a task such as `en-de`; raises EvalError or DataError if it cannot be translated."""


class SourceVocabulary(Protocol):
    """A vocabulary that turns text into token ids and back."""

    def encode_sources(self, lines: Sequence[str], *, target: str) -> Ragged:
        """Encode sources as in training, with the target language's tag in its place and `EOS` at the end.

        Raises:
            DataError: If there is no such target language.
        """
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; special ids have no text."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLine:
    """A source line."""

    text: str
    """The line without its end."""
    target: str
    """The language to translate it into, or the language pair where the vocabulary needs both."""
    task: str = ""
    """Its task, such as `en-de`; empty if it is not known."""
    number: int = 0
    """The line's number in its file, from 1."""
    digest: str = ""
    """A checksum of this line and all lines before it."""

    @property
    def language(self) -> str:
        """The language to translate it into."""
        return self.target.rpartition("-")[2]


def is_blank(text: str) -> bool:
    """Return whether a line has only spaces, control characters and marks without width."""
    return all(unicodedata.category(character) in _INVISIBLE for character in text)


def number_lines(texts: Iterable[str], *, target: str, task: str = "") -> Iterator[SourceLine]:
    """Yield lines of text that all go into one language, with their numbers and digests."""
    for number, text, digest in _number(texts):
        yield SourceLine(text=text, target=target, task=task, number=number, digest=digest)


def source_lines(stream: Iterable[bytes], *, name: str, target: str, task: str = "") -> Iterator[SourceLine]:
    r"""Yield lines of UTF-8 that all go into one language; each ends with \n or \r\n and nothing else.

    Args:
        stream: The lines as bytes.
        name: The stream's name in messages.
        target: The target language.
        task: Their task, if it is known.

    Raises:
        EvalError: If a line is not UTF-8; the message names the line.
    """
    return number_lines(_decode(stream, name), target=target, task=task)


def tagged_source_lines(stream: Iterable[bytes], *, name: str, target_of: TargetOf) -> Iterator[SourceLine]:
    """Yield lines that each begin with their task and a tab: `en-de<TAB>text`.

    Args:
        stream: The lines as bytes.
        name: The stream's name in messages.
        target_of: Returns the target language of a task.

    Raises:
        EvalError: If a line is not UTF-8, or has no task that can be translated; the message names the line.
    """
    targets: dict[str, str] = {}
    for number, tagged, digest in _number(_decode(stream, name)):
        task, tab, text = tagged.partition("\t")
        if not tab:
            raise EvalError(
                f"{name}:{number}: must begin with its task and a tab, such as `en-de<TAB>text`; or name the "
                "task of all lines with --task."
            )
        if task not in targets:
            try:
                targets[task] = target_of(task)
            except (EvalError, DataError) as error:
                raise EvalError(f"{name}:{number}: {error}") from None
        yield SourceLine(text=text, target=targets[task], task=task, number=number, digest=digest)


def _number(texts: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Yield each text with its number from 1, and a digest of all texts up to it."""
    digest = hashlib.blake2b(digest_size=16)
    for number, text in enumerate(texts, start=1):
        digest.update(text.encode() + b"\n")
        yield number, text, digest.hexdigest()


def _decode(stream: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(stream, start=1):
        yield decode_line(line, name=name, number=number)
