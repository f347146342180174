"""Test sets in WMT's mark-up, a <seg> a sentence: SGML, and the XML of 2021 and later.

SGML is no XML: tags may stay open, and `&` and `<` may stand for themselves where no tag or entity begins.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import ByteSource, File
from mnmt_data.readers.encoding import decode_document, markup_of
from mnmt_data.readers.language_codes import languages, serves
from mnmt_data.readers.text_pairs import TextPairs

Role = Literal["src", "ref", "hyp"]
"""Source, reference or system's output."""

MARKUP = (".sgm", ".xml")
"""Endings of names of files."""

_SETS: dict[str, Role] = {"srcset": "src", "refset": "ref", "tstset": "hyp"}
_PARTS: dict[str, Role] = {"src": "src", "ref": "ref", "hyp": "hyp"}
_TAGS = "|".join([*_SETS, *_PARTS, "mteval", "dataset", "collection", "doc", "p", "hl", "seg"])
_LITERAL = re.compile(rf"&(?!(?:#\d+|#x[\da-f]+|\w+);)|<(?!/?(?:{_TAGS})\b|[!?])", re.I)
"""The `&` or `<` of a text, which a careful writer would have escaped."""

_SPACES = re.compile(r"[ \t\r\n]+")

Key = tuple[str, str, int]
"""Document, segment, and how often both have come before."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The texts of a file in WMT's mark-up, of equal length."""

    name: str
    """The file, for messages."""

    texts: dict[str, list[str]]
    """{name: sentences}: `src`, `ref` or `ref:TRANSLATOR`, and a system's name, or `hyp`."""

    roles: dict[str, Role]
    """{name: role}."""

    languages: dict[str, str]
    """{name: code}, empty where the file does not say."""

    missing: dict[str, int]
    """{name: segments that it lacks and others have}, which are empty."""

    def of(self, role: Role) -> list[str]:
        """Return the names of the texts of a role."""
        return [name for name, other in self.roles.items() if other == role]

    def text(self, role: Role, column: str | None = None, *, option: str = "a column") -> list[str]:
        """Return one text.

        Args:
            role: The role of the text, unless the file holds only one.
            column: Its name; None where only one has the role.
            option: The place to name it, for messages.

        Raises:
            DataError: If there is no such text, or several, or an output lacks segments.
        """
        listed = ", ".join(self.texts)
        if column is not None and column not in self.texts:
            raise DataError(f"{self.name}: has no text {column!r} for {option}; it has {listed}.")
        names = [column] if column else self.of(role) if len(self.texts) > 1 else list(self.texts)
        if len(names) != 1:
            raise DataError(f"{self.name}: has the texts {listed}; name one with {option}.")
        if self.roles[names[0]] == "hyp" and (count := self.missing[names[0]]):
            total = len(self.texts[names[0]])
            raise DataError(f"{self.name}: {names[0]} lacks {count} of {total} segments; add them.")
        return self.texts[names[0]]


class _Parser(HTMLParser):
    """Collects the pieces of each segment of each text."""

    def __init__(self) -> None:
        super().__init__()
        self.segments: dict[tuple[Role, str], dict[Key, list[str]]] = {}
        self.languages: dict[tuple[Role, str], str] = {}
        self._role: Role = "hyp"
        self._name = self._set_name = self._language = self._document = ""
        self._documents = 0
        self._is_skipped = True  # till a set or a document begins: TMX has <seg> too
        self._pieces: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._pieces = None
        if tag in _SETS:
            self._role = _SETS[tag]
            self._set_name = values.get("refid") or values.get("sysid") or ""
            self._language = values.get("srclang" if tag == "srcset" else "trglang", "")
            self._is_skipped = False
        elif tag in _PARTS:
            self._role = _PARTS[tag]
            self._name = values.get("translator") or values.get("system") or ""
            self._language = values.get("lang") or values.get("language") or ""
        elif tag == "doc":
            self._documents += 1
            self._document = values.get("docid") or values.get("id") or str(self._documents)
            self._name = values.get("sysid") or self._set_name
            self._is_skipped = "testsuite" in values
        elif tag == "seg" and not self._is_skipped:
            self._pieces = self._new_segment(values.get("id"))

    def handle_endtag(self, tag: str) -> None:
        self._pieces = None

    def handle_data(self, data: str) -> None:
        if self._pieces is not None:
            self._pieces.append(data)

    def _new_segment(self, identifier: str | None) -> list[str]:
        place = self._role, "" if self._role == "src" else self._name
        self.languages.setdefault(place, self._language)
        text = self.segments.setdefault(place, {})
        key = self._document, identifier or str(len(text)), 0
        while key in text:
            key = (*key[:2], key[2] + 1)
        text[key] = []
        return text[key]


def parse_markup(data: bytes, name: str) -> Texts | None:
    """Parse a document in WMT's mark-up; None if it is no mark-up.

    Segments of one document and number belong together. As sacreBLEU does, those without any reference are
    left out where there are sources and references, and so are test suites.

    Args:
        data: The whole document.
        name: The file, for messages.

    Raises:
        DataError: If it is another mark-up, without <seg>, or not in its encoding.
    """
    if not (begin := markup_of(data)):
        return None
    parser = _Parser()
    parser.feed(_LITERAL.sub(lambda match: html.escape(match[0]), decode_document(data, name)))
    parser.close()
    if not parser.segments:
        what = "give text, a sentence a line, or WMT's .sgm or .xml"
        raise DataError(f"{name}: is mark-up ({begin}) without a document of <seg>; {what}.")
    return _texts(name, parser)


def _texts(name: str, parser: _Parser) -> Texts:
    segments = {
        place: {key: _SPACES.sub(" ", "".join(pieces)).strip(" ") for key, pieces in text.items()}
        for place, text in parser.segments.items()
    }
    keys = list(dict.fromkeys(key for text in segments.values() for key in text))
    references = [text for (role, _), text in segments.items() if role == "ref"]
    if references and any(role == "src" for role, _ in segments):
        keys = [key for key in keys if any(text.get(key) for text in references)]
    names = {place: _name(*place) for place in segments}
    return Texts(
        name=name,
        texts={names[place]: [text.get(key, "") for key in keys] for place, text in segments.items()},
        roles={names[place]: place[0] for place in segments},
        languages={names[place]: code for place, code in parser.languages.items()},
        missing={names[place]: sum(key not in text for key in keys) for place, text in segments.items()},
    )


def _name(role: Role, name: str) -> str:
    return name or role if role == "hyp" else f"{role}:{name}" if name else role


@dataclass(frozen=True, kw_only=True)
class MarkedUpText:
    """A source of bytes: the sentences of one text, a line each."""

    source: File
    role: Role
    column: str | None = None

    @property
    def path(self) -> Path:
        """The file on disk."""
        return self.source.path

    @property
    def name(self) -> str:
        """The path."""
        return self.source.name

    def chunks(self) -> Iterator[bytes]:
        """Yield the sentences.

        Raises:
            DataError: If the file cannot be read, or does not hold just one text of the role.
        """
        texts = parse_markup(self.source.read(), self.name)
        if texts is None:
            raise DataError(f"{self.name}: is no mark-up any more; prepare again.")
        yield "".join(f"{line}\n" for line in texts.text(self.role, self.column)).encode()


def text_source(path: Path, role: Role) -> ByteSource:
    """Return the lines of a text, which is plain or in WMT's mark-up."""
    file = File(path)
    is_markup = path.is_file() and markup_of(next(file.chunks(), b""))
    return MarkedUpText(source=file, role=role) if is_markup else file


def open_wmt(path: Path, task: str) -> TextPairs:
    """Open a file of WMT's with source and reference, the first if there are several.

    Raises:
        DataError: If it cannot be read, lacks one of them, or is of other languages.
    """
    texts = parse_markup(File(path).read(), str(path))
    if texts is None or not texts.of("src") or not texts.of("ref"):
        held = ", ".join(texts.texts) if texts else "no mark-up"
        what = f"must hold a source and a reference, but holds {held}"
        raise DataError(f"{path}: {what}; name two files with {{lang}} for the languages.")
    sides = texts.of("src")[0], texts.of("ref")[0]
    codes = [texts.languages[side] for side in sides]
    if not _serve(codes, task):
        sides, codes = (sides[1], sides[0]), codes[::-1]
    if not _serve(codes, task):
        raise DataError(f"{path}: is of {codes[1]} and {codes[0]}, not of {task}.")
    file = File(path)
    src, tgt = (MarkedUpText(source=file, role=texts.roles[side], column=side) for side in sides)
    return TextPairs(task=task, src=src, tgt=tgt)


def _serve(codes: list[str], task: str) -> bool:
    return all(map(serves, codes, languages(task)))
