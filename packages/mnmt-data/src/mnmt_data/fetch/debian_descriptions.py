"""Debian's package descriptions, translated by volunteers: an out-of-domain test set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from debian.deb822 import Deb822

from mnmt_data.fetch.apt import Apt, Report
from mnmt_data.fetch.config import ALL, FetchConfig, LanguageSelection
from mnmt_data.fetch.languages import ENGLISH, full_code
from mnmt_data.fetch.parallel_text import ParallelText, check_folder, publish
from mnmt_data.filters import normalise

SOURCE = "Debian package descriptions"
LICENCE = "as the packages described; translations by the Debian Description Translation Project"

Paragraphs = dict[tuple[str, int, int], str]
"""{(MD5 of the English description, number of paragraphs, index of the paragraph): text}

A description with another number of paragraphs than the English one shares no key with it.
"""

_DESCRIPTION = re.compile(r"Description-(?!md5$)[\w@]+")
_BREAK = re.compile(r"\n \.[ \t]*(?=\n|$)")
# A line break inside Chinese or Japanese text is not a space.
_CJK = "[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"
_WRAPPED_CJK = re.compile(f"(?<={_CJK})\n (?={_CJK})")


def fetch_debian_descriptions(config: FetchConfig, folder: Path, *, report: Report) -> None:
    """Write the translated package descriptions into the corpus folder `folder`.

    Descriptions align by the checksum of the English text, then paragraph by paragraph if both have the same
    number.

    Args:
        config: Languages and pairs.
        folder: Corpus folder to write.
        report: Called with a line at each stage.

    Raises:
        DataError: If the lists cannot be fetched or hold no descriptions.
    """
    check_folder(folder)
    apt = Apt(folder.parent / ".downloads" / "descriptions", report=report)
    report("fetching package descriptions")
    selection = _update(apt, config)
    text = ParallelText(read_descriptions(apt.descriptions(ENGLISH)))
    for code, name in selection.names.items():
        if code != ENGLISH:
            translated = text.add(code, read_descriptions(apt.descriptions(name)))
            report(f"{code}: {translated:,} paragraphs translated")
    lists = [path.name for name in selection.names.values() for path in apt.descriptions(name)]
    provenance = {"source": SOURCE, "lists": lists, "licence": LICENCE}
    publish(folder, text, config, selection, provenance=provenance, report=report)


def _update(apt: Apt, config: FetchConfig) -> LanguageSelection:
    """Fetch the descriptions in English and the requested languages.

    A package source may announce a language without a list, which `all` then excludes.
    """
    if config.langs != ALL:
        languages = [full_code(language) for language in config.langs.split(",")]
        apt.update(description_languages=list(dict.fromkeys([ENGLISH, *languages])))
        return config.select(apt.description_languages(), corpus=SOURCE)
    apt.update()
    languages = apt.description_languages()
    apt.update(description_languages=languages)
    return config.select([name for name in languages if apt.has_descriptions(name)], corpus=SOURCE)


def read_descriptions(lists: list[Path]) -> Paragraphs:
    """Read the paragraphs in apt's lists of one language; the first list with a description wins."""
    paragraphs: Paragraphs = {}
    known_md5s: set[str] = set()
    for path in lists:
        for md5, texts in parse_descriptions(path.read_text(encoding="utf-8")):
            if md5 not in known_md5s:
                paragraphs.update({(md5, len(texts), place): text for place, text in enumerate(texts)})
            known_md5s.add(md5)
    return paragraphs


def parse_descriptions(content: str) -> Iterator[tuple[str, list[str]]]:
    """Yield `(MD5 of the English, paragraphs)` for each entry of a Translation list, the synopsis first.

    The lines of a paragraph begin with a space; a line ``.`` separates paragraphs.
    """
    for entry in Deb822.iter_paragraphs(content.splitlines(keepends=True), use_apt_pkg=False):
        md5, descriptions = entry.get("Description-md5"), filter(_DESCRIPTION.fullmatch, entry)
        if md5 is None or (field := next(descriptions, None)) is None:
            continue
        synopsis, line_break, rest = entry[field].partition("\n")
        paragraphs = [synopsis, *_BREAK.split(line_break + rest)]
        texts = [normalise(_WRAPPED_CJK.sub("", paragraph)) for paragraph in paragraphs]
        yield md5, [text for text in texts if text]
