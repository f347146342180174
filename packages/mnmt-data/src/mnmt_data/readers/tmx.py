"""Translation memories (TMX 1.1 to 1.4)."""

from __future__ import annotations

from collections.abc import Iterator

from mnmt_data.readers.byte_sources import ByteSource
from mnmt_data.readers.language_codes import best_tags
from mnmt_data.readers.units import NoPair, Unit, UnitPairs, broken
from mnmt_data.readers.xml_units import NATIVE_CODE, elements, texts_of

_SEGMENT = frozenset({"seg"})


def tmx_pairs(source: ByteSource, task: str) -> UnitPairs:
    """Return a reader of a memory; of several segments or regions of a language, a unit gives the first."""
    return UnitPairs(source, task, _units)


def _units(source: ByteSource, task: str) -> Iterator[Unit]:
    for unit, segments in texts_of(elements(source, root="tmx", unit="tu"), _SEGMENT, NATIVE_CODE):
        if isinstance(segments, ValueError):
            yield broken(source, unit, segments)
            continue
        texts: dict[str, str] = {}
        for segment in segments:
            language = segment.attributes.get("xml:lang") or segment.attributes.get("lang", "")
            texts.setdefault(language, segment.text())
        if (sides := best_tags(tuple(texts), task)) is None:
            listed = ", ".join(tag or "no language" for tag in texts) or "nothing"
            yield NoPair("lack one of its languages", f" (the first has {listed})")
        else:
            yield texts[sides[0]], texts[sides[1]]
