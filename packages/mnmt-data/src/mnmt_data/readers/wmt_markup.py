"""Test sets in WMT's mark-up, a <seg> a sentence: SGML, and the XML of 2021 and later.

SGML is no XML: tags may stay open, and `&` and `<` may stand for themselves where no tag or entity begins.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import ByteSource, File
from mnmt_data.readers.encoding import decode_document, markup_of
from mnmt_data.readers.language_codes import languages, serves
from mnmt_data.readers.text_pairs import TextPairs

Role = Literal["src", "ref", "hyp", "origlang"]
"""Source, reference or system's output; or the language that each sentence was written in."""

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

    origins: list[str]
    """The original language of each sentence; empty where the file does not say."""

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
            DataError: If there is no such text, or several.
        """
        listed = ", ".join(self.texts)
        if column is not None and column not in self.texts:
            raise DataError(f"{self.name}: has no text {column!r} for {option}; it has {listed}.")
        names = [column] if column else self.of(role) if len(self.texts) > 1 else list(self.texts)
        if len(names) != 1:
            raise DataError(f"{self.name}: has the texts {listed}; name one with {option}.")
        return self.texts[names[0]]


class _Parser(HTMLParser):
    """Collects the segments of each text: {(role, name): {key: text}}."""

    def __init__(self) -> None:
        super().__init__()
        self.segments: dict[tuple[Role, str], dict[Key, str]] = {}
        self.languages: dict[tuple[Role, str], str] = {}
        self.origins: dict[Key, str] = {}
        self._role: Role = "hyp"
        self._name = self._set_name = self._language = self._origin = ""
        self._document, self._documents = "", 0
        self._is_skipped = True  # till a set or a document begins: TMX has <seg> too
        self._key, self._pieces = ("", "", 0), list[str]()
        self._in_segment = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._end_segment()
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
            self._origin, self._is_skipped = values.get("origlang", ""), "testsuite" in values
        elif tag == "seg" and not self._is_skipped:
            self._start_segment(values.get("id"))

    def handle_endtag(self, tag: str) -> None:
        self._end_segment()

    def handle_data(self, data: str) -> None:
        if self._in_segment:
            self._pieces.append(data)

    def unknown_decl(self, data: str) -> None:
        self.handle_data(html.unescape(data.removeprefix("CDATA[")))  # undoes `_LITERAL`

    def close(self) -> None:
        super().close()
        self._end_segment()

    def _start_segment(self, identifier: str | None) -> None:
        place = self._role, "" if self._role == "src" else self._name
        text = self.segments.setdefault(place, {})
        self.languages.setdefault(place, self._language)
        key = self._document, identifier or str(len(text)), 0
        while key in text:
            key = (*key[:2], key[2] + 1)
        text[key] = ""
        self.origins.setdefault(key, self._origin)
        self._key, self._in_segment = key, True

    def _end_segment(self) -> None:
        if self._in_segment:
            place = self._role, "" if self._role == "src" else self._name
            self.segments[place][self._key] = _SPACES.sub(" ", "".join(self._pieces)).strip(" ")
        self._in_segment, self._pieces = False, []


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
    roles = [role for role, _ in parser.segments]
    keys = list(dict.fromkeys(key for text in parser.segments.values() for key in text))
    if {"src", "ref"} <= set(roles):
        references = [text for (role, _), text in parser.segments.items() if role == "ref"]
        keys = [key for key in keys if any(text.get(key) for text in references)]
    names = {place: _name(*place) for place in parser.segments}
    return Texts(
        name=name,
        texts={names[place]: [text.get(key, "") for key in keys] for place, text in parser.segments.items()},
        roles=dict(zip(names.values(), roles, strict=True)),
        languages={names[place]: code for place, code in parser.languages.items()},
        origins=[parser.origins[key] for key in keys],
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
        lines = texts.origins if self.role == "origlang" else texts.text(self.role, self.column)
        yield "".join(f"{line}\n" for line in lines).encode()


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
    origins = replace(src, role="origlang") if any(texts.origins) else None
    return TextPairs(task=task, src=src, tgt=tgt, origins=origins)


def _serve(codes: list[str], task: str) -> bool:
    return all(map(serves, codes, languages(task)))
