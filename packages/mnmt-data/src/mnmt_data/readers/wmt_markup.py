"""Test sets in WMT's mark-up, a <seg> a sentence: SGML, and the XML of 2021 and later.

SGML is no XML: tags may stay open, and `&` and `<` may stand for themselves where no tag or entity begins.
"""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import File
from mnmt_data.readers.encoding import decode_document, markup_of
from mnmt_data.readers.language_codes import LANGUAGE_NAMES, languages, serves
from mnmt_data.readers.text_pairs import TextPairs

Role = Literal["src", "ref", "hyp"]
"""Source, reference or system's output."""

MARKUP = (".sgm", ".xml")
"""Endings of names of files."""

_SETS: dict[str, Role] = {"srcset": "src", "refset": "ref", "tstset": "hyp"}
_PARTS: dict[str, Role] = {"src": "src", "ref": "ref", "hyp": "hyp"}
_TAGS = "|".join([*_SETS, *_PARTS, "mteval", "dataset", "collection", "doc", "p", "hl", "seg"])
_COMMENT = "!--.*?-->"
_LITERAL = re.compile(
    rf"&(?!(?:#\d+|#x[\da-f]+|\w+);)|<(?!/?(?:{_TAGS})\b|{_COMMENT}|!DOCTYPE\b|\?xml\b)", re.I | re.S
)
"""The `&` or `<` of a text, which a careful writer would have escaped."""

_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.S)
_ENDS = "|".join([*_SETS, "doc", "seg"])
_CLOSED = re.compile(rf"(<seg\b[^>]*(?<!/)>)((?:(?!</?(?:{_ENDS})\b).)*)(?=</seg\b)", re.I | re.S)
"""A segment with its end tag, in which other tags are text."""

_TAG_IN_TEXT = re.compile(rf"<(?!{_COMMENT})", re.S)

_SPACES = re.compile(r"[ \t\r\n]+")

Key = tuple[str, str, int]
"""Document, segment, and how often both have come before."""


logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Text:
    """One of the texts of a file."""

    role: Role
    language: str
    """Its code, empty where the file does not say."""

    segments: dict[Key, str]


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The texts of a file in WMT's mark-up."""

    name: str
    """The file, for messages."""

    texts: dict[str, Text]
    """{name: text}: `src`, `ref` or `ref:TRANSLATOR`, and a system's name, or `hyp`."""

    keys: tuple[Key, ...]
    """The segments to read, in order; a text may lack some."""

    def of(self, role: Role) -> list[str]:
        """Return the names of the texts of a role."""
        return [name for name, text in self.texts.items() if text.role == role]

    def sentences(self, name: str) -> list[str]:
        """Return the sentences of a text, empty where it lacks a segment."""
        return [self.texts[name].segments.get(key, "") for key in self.keys]

    def text(self, role: Role, column: str | None = None, *, option: str = "a column") -> list[str]:
        """Return the sentences of one text.

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
        text = self.texts[names[0]]
        if text.role == "hyp" and (count := sum(key not in text.segments for key in self.keys)):
            what = f"{names[0]} lacks {count} of {len(self.keys)} segments"
            raise DataError(f"{self.name}: {what}; add them.")
        return self.sentences(names[0])


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
        if tag not in ("p", "hl"):
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
        if tag not in ("p", "hl"):
            self._pieces = None

    def handle_data(self, data: str) -> None:
        if self._pieces is not None:
            self._pieces.append(data)

    def _new_segment(self, identifier: str | None) -> list[str]:
        place = self._role, "" if self._role == "src" else self._name
        self.languages.setdefault(place, _code(self._language))
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
    parser.feed(_escape(decode_document(data, name)))
    parser.close()
    if not parser.segments:
        what = "give text, a sentence a line, or WMT's .sgm or .xml"
        raise DataError(f"{name}: is mark-up ({begin}) without a document of <seg>; {what}.")
    return _texts(name, parser)


def _escape(document: str) -> str:
    """Return a document with the text of its segments as a careful writer would have written it."""
    document = _CDATA.sub(lambda match: html.escape(match[1]), document)
    document = _CLOSED.sub(lambda match: match[1] + _TAG_IN_TEXT.sub("&lt;", match[2]), document)
    return _LITERAL.sub(lambda match: html.escape(match[0]), document)


def _code(language: str) -> str:
    """Return the code of a language as a file gives it: IWSLT has `english`; NIST's `any` says nothing."""
    return "" if language.lower() == "any" else LANGUAGE_NAMES.get(language.lower(), language)


def _texts(name: str, parser: _Parser) -> Texts:
    texts = {
        _name(*place): Text(
            role=place[0],
            language=parser.languages[place],
            segments={key: _SPACES.sub(" ", "".join(pieces)).strip(" ") for key, pieces in segments.items()},
        )
        for place, segments in parser.segments.items()
    }
    keys = dict.fromkeys(key for text in texts.values() for key in text.segments)
    references = [text.segments for text in texts.values() if text.role == "ref"]
    if references and any(text.role == "src" for text in texts.values()):
        keys = {key: None for key in keys if any(text.get(key) for text in references)}
    return Texts(name=name, texts=texts, keys=tuple(keys))


def _name(role: Role, name: str) -> str:
    return name or role if role == "hyp" else f"{role}:{name}" if name else role


@dataclass(frozen=True, kw_only=True)
class MarkedUpText:
    """A source of bytes: the sentences of one text, a line each."""

    source: File
    column: str
    keys: tuple[Key, ...]
    """Its segments, in order."""

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
            DataError: If the file cannot be read, or has been replaced.
        """
        texts = parse_markup(self.source.read(), self.name)
        if texts is None or self.column not in texts.texts:
            raise DataError(f"{self.name}: has no text {self.column} any more; prepare again.")
        segments = texts.texts[self.column].segments
        yield "".join(f"{segments.get(key, '')}\n" for key in self.keys).encode()


def text_pairs(src: Path, tgt: Path, task: str) -> TextPairs:
    """Open two texts, each plain or in WMT's mark-up; where both are marked up, equal segments are joined.

    Raises:
        DataError: If a file in mark-up cannot be read or is of another language, or one lacks segments.
    """
    src_code, tgt_code = languages(task)
    first, second = _text(src, "src", src_code), _text(tgt, "ref", tgt_code)
    if isinstance(first, MarkedUpText) and isinstance(second, MarkedUpText):
        _check_segments(first, second)
        second = replace(second, keys=first.keys)
    return TextPairs(task=task, src=first, tgt=second)


def _text(path: Path, role: Role, code: str) -> File | MarkedUpText:
    """Return a text in a language, the first if a file holds several, of the role if any has it."""
    file = File(path)
    is_markup = path.is_file() and markup_of(next(file.chunks(), b""))
    if not is_markup or (texts := parse_markup(file.read(), str(path))) is None:
        return file
    names = [name for name, text in texts.texts.items() if not text.language or serves(text.language, code)]
    if not names:
        listed = " and ".join(dict.fromkeys(text.language for text in texts.texts.values()))
        raise DataError(f"{path}: is of {listed}, not of {code}.")
    names = [name for name in names if texts.texts[name].role == role] or names
    if len(names) > 1:
        logger.warning("%s: holds the texts %s; the first is read", path, ", ".join(names))
    return MarkedUpText(source=file, column=names[0], keys=texts.keys)


def _check_segments(src: MarkedUpText, tgt: MarkedUpText) -> None:
    for one, other in ((src, tgt), (tgt, src)):
        if missing := dict.fromkeys(one.keys).keys() - set(other.keys):
            document, segment, _ = next(key for key in one.keys if key in missing)
            what = f"lacks {len(missing)} segments of {one.name}, the first {segment} of document {document}"
            raise DataError(f"{other.name}: {what}; give two files of one test set.")


def open_wmt(path: Path, task: str) -> TextPairs:
    """Open a file of WMT's with source and reference, the first if there are several.

    Raises:
        DataError: If it cannot be read, lacks one of them, or is of other languages.
    """
    file = File(path)
    texts = parse_markup(file.read(), str(path))
    if texts is None or not texts.of("src") or not texts.of("ref"):
        held = ", ".join(texts.texts) if texts else "no mark-up"
        what = f"must hold a source and a reference, but holds {held}"
        raise DataError(f"{path}: {what}; name two files with {{lang}} for the languages.")
    sides = [texts.of("src")[0], texts.of("ref")[0]]
    codes = [texts.texts[side].language for side in sides]
    if not _serve(codes, task):
        sides.reverse()
        codes.reverse()
    if not _serve(codes, task):
        raise DataError(
            f"{path}: is of {' and '.join(c or 'no language' for c in codes[::-1])}, not of {task}."
        )
    src, tgt = (MarkedUpText(source=file, column=side, keys=texts.keys) for side in sides)
    return TextPairs(task=task, src=src, tgt=tgt)


def _serve(codes: list[str], task: str) -> bool:
    pairs = zip(codes, languages(task), strict=True)
    return any(codes) and all(not code or serves(code, side) for code, side in pairs)
