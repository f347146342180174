"""Translations in XLIFF 1.2 and 2, as translation tools exchange them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mnmt_data.readers.byte_sources import ByteSource
from mnmt_data.readers.language_codes import languages, serves
from mnmt_data.readers.units import NoPair, Unit, UnitPairs, broken
from mnmt_data.readers.xml_units import NATIVE_CODE, Element, ElementText, elements, texts_of

XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff")
"""Endings of names of files: XLIFF's own, and those of Trados, memoQ and Phrase."""

_SIDES = frozenset({"source", "seg-source", "target"})
_LEFT_OUT = NATIVE_CODE | {"alt-trans", "note"}
_ATTRIBUTE = re.compile(r"([\w:-]+)\s*=\s*[\"']([^\"']*)")
_NOT_DONE = frozenset({"new", "needs-translation"})
"""States of XLIFF 1.2 of targets that nobody has translated."""

_UNTRANSLATED = NoPair("are not translated")


def xliff_pairs(source: ByteSource, task: str) -> UnitPairs:
    """Return a reader of a file in either direction; alternative translations are left out."""
    return UnitPairs(source, task, _units)


def _units(source: ByteSource, task: str) -> Iterator[Unit]:
    codes = ("", "")
    stream = elements(source, root="xliff", unit="trans-unit|segment", around="xliff|file")
    for unit, sides in texts_of(stream, _SIDES, _LEFT_OUT):
        if not unit.is_unit:
            codes = _languages(unit, codes)
            continue
        if isinstance(sides, ValueError):
            yield broken(source, unit, sides)
            continue
        texts = {text.tag: text for text in sides}
        if (is_forward := _direction(codes, texts, task)) is None:
            pair = " to ".join(code or "no language" for code in codes)
            yield NoPair("are of other languages", f" (the first is from {pair})")
            continue
        for src, tgt in _pairs(texts):
            if not tgt.strip():
                yield _UNTRANSLATED
            else:
                yield (src, tgt) if is_forward else (tgt, src)


def _languages(element: Element, codes: tuple[str, str]) -> tuple[str, str]:
    """Return source and target language of the start tag of a file, else those that held before."""
    values = dict(_ATTRIBUTE.findall(element.xml))
    src = values.get("source-language") or values.get("srcLang")
    return (src, values.get("target-language") or values.get("trgLang") or "") if src else codes


def _direction(codes: tuple[str, str], texts: dict[str, ElementText], task: str) -> bool | None:
    """Return whether source and target are those of the task (True) or exchanged (False); None if neither."""
    src, tgt = codes
    if not tgt and "target" in texts:
        tgt = texts["target"].attributes.get("xml:lang", "")
    for is_forward, (first, second) in ((True, languages(task)), (False, languages(task)[::-1])):
        if serves(src, first) and (not tgt or serves(tgt, second)):
            return is_forward
    return None


def _pairs(texts: dict[str, ElementText]) -> Iterator[tuple[str, str]]:
    """Yield the sentences that both sides mark, else the whole text; no target gives an empty one."""
    src, tgt, marked = texts.get("source"), texts.get("target"), texts.get("seg-source")
    if src is None or tgt is None or tgt.attributes.get("state") in _NOT_DONE:
        yield "", ""
    elif marked is not None and marked.marks and marked.marks.keys() == tgt.marks.keys():
        for mark in tgt.marks:
            yield marked.text(mark), tgt.text(mark)
    else:
        yield src.text(), tgt.text()
