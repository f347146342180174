"""Debian's package descriptions, translated by volunteers: an out-of-domain test set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from mnmt_data.clean import clean, normalise
from mnmt_data.corpus import Bitext
from mnmt_data.fetch.apt import Apt
from mnmt_data.fetch.publish import check_codes, code, publish

TESTSET = "debian"
LICENCE = "as the packages described; translations by the Debian Description Translation Project"

Descriptions = dict[str, list[str]]
"""{MD5 of the English description: paragraphs}"""

_ENTRY = re.compile(
    r"^Description-md5: (?P<md5>\w+)\nDescription-[\w@]+: (?P<synopsis>.*)(?P<description>(?:\n .*)*)",
    flags=re.MULTILINE,
)
_BREAK = re.compile(r"\n \.[ \t]*(?=\n|$)")
# A line break inside Chinese or Japanese text stands for no space.
_CJK = "[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"
_WRAPPED_CJK = re.compile(f"(?<={_CJK})\n (?={_CJK})")


def fetch_debian_descriptions(
    languages: tuple[str, ...], folder: Path, *, report: Callable[[str], None]
) -> None:
    """Writes `debian.en-XX` of every language into the corpus folder `folder`.

    Descriptions align by the checksum of the English text, then paragraph by paragraph where both have as
    many.

    Args:
        languages: other than English (`de`, `zh-CN`).
        folder: corpus folder to write.
        report: called with a line at each stage.

    Raises:
        DataError: if the lists cannot be fetched or hold no descriptions.
    """
    check_codes(languages)
    names = {language: language.replace("-", "_") for language in ("en", *languages)}
    apt = Apt(folder.parent / ".downloads" / "descriptions", description_languages=list(names.values()))
    report("fetching package descriptions")
    apt.update()
    english = read_descriptions(apt.descriptions(names["en"]))
    bitexts = {}
    for language in languages:
        task = f"en-{code(language)}"
        bitexts[task] = align(english, read_descriptions(apt.descriptions(names[language])))
        report(f"{task}: {len(bitexts[task]):,} pairs")
    lists = [path.name for name in names.values() for path in apt.descriptions(name)]
    provenance = {"source": "Debian package descriptions", "lists": lists, "licence": LICENCE}
    publish(folder, TESTSET, bitexts, provenance)


def align(english: Descriptions, other: Descriptions) -> Bitext:
    """Pairs of paragraphs of the descriptions that have as many in both languages, cleaned."""
    shared = [(english[key], other[key]) for key in english if key in other]
    pairs = [pair for src, tgt in shared if len(src) == len(tgt) for pair in zip(src, tgt, strict=True)]
    return clean(Bitext(src=[src for src, _ in pairs], tgt=[tgt for _, tgt in pairs]))[0]


def read_descriptions(lists: list[Path]) -> Descriptions:
    """The descriptions in apt's lists of one language."""
    contents = (path.read_text(encoding="utf-8") for path in lists)
    return {key: texts for content in contents for key, texts in parse_descriptions(content)}


def parse_descriptions(content: str) -> Iterator[tuple[str, list[str]]]:
    """`(MD5 of the English, paragraphs)` of every entry of a Translation list; the synopsis is the first one.

    The lines of a paragraph begin with a space; ``.`` alone on a line is between paragraphs.
    """
    for entry in _ENTRY.finditer(content):
        paragraphs = [entry["synopsis"], *_BREAK.split(entry["description"])]
        texts = [normalise(_WRAPPED_CJK.sub("", paragraph)) for paragraph in paragraphs]
        yield entry["md5"], [text for text in texts if text]
