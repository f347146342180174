"""Translations in XLIFF 1.2 and 2, as translation tools exchange them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mnmt_data.readers.byte_sources import ByteSource
from mnmt_data.readers.language_codes import languages, serves
from mnmt_data.readers.units import NoPair, Unit, UnitPairs, broken
from mnmt_data.readers.xml_units import NATIVE_CODE, Element, elements, texts_of

XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff")
"""Endings of names of files: XLIFF's own, and those of Trados, memoQ and Phrase."""

_SIDES = frozenset({"source", "target"})
_LEFT_OUT = NATIVE_CODE | {"alt-trans"}
_ATTRIBUTE = re.compile(r"([\w:-]+)\s*=\s*([\"'])(.*?)\2", re.S)
_NOT_DONE = frozenset({"new", "needs-translation", "initial"})
"""States of targets that nobody has translated, the last one of XLIFF 2."""


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
        src, tgt = (texts[side].text() if side in texts else "" for side in ("source", "target"))
        if not tgt.strip() or texts["target"].attributes.get("state") in _NOT_DONE:
            yield NoPair("are not translated")
            continue
        languages_of_unit = codes[0], codes[1] or texts["target"].attributes.get("xml:lang", "")
        if (is_forward := _direction(languages_of_unit, task)) is None:
            reason = "are of other languages" if all(languages_of_unit) else "lack a language"
            pair = " to ".join(code or "no language" for code in languages_of_unit)
            yield NoPair(reason, f" (the first is from {pair})")
        else:
            yield (src, tgt) if is_forward else (tgt, src)


def _languages(element: Element, codes: tuple[str, str]) -> tuple[str, str]:
    """Return source and target language of the start tag of a file, else those that held before."""
    values = {name: value for name, _, value in _ATTRIBUTE.findall(element.xml)}
    src = values.get("source-language") or values.get("srcLang")
    return (src, values.get("target-language") or values.get("trgLang") or "") if src else codes


def _direction(codes: tuple[str, str], task: str) -> bool | None:
    """Return whether source and target are those of the task (True) or exchanged (False); None if neither."""
    for is_forward, sides in ((True, languages(task)), (False, languages(task)[::-1])):
        if all(map(serves, codes, sides)):
            return is_forward
    return None
