"""Debian's package descriptions, translated by volunteers: an out-of-domain test set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from mnmt_data.clean import clean, normalise
from mnmt_data.corpus import Bitext
from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import Apt
from mnmt_data.fetch.publish import check_codes, code, publish

TESTSET = "debian"


def fetch_debian_descriptions(languages: tuple[str, ...], folder: Path, *, report: Callable[[str], None]) -> None:
    """Writes `debian.en-XX` of every language into the corpus folder `folder`.

    Descriptions align by the checksum of the English text, then paragraph by paragraph where both have as many.

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
    english = _descriptions(apt, names["en"])
    bitexts = {}
    for language in languages:
        task = f"en-{code(language)}"
        bitexts[task] = align(english, _descriptions(apt, names[language]))
        report(f"{task}: {len(bitexts[task]):,} pairs")
    publish(folder, TESTSET, bitexts, {"source": "Debian package descriptions", "licence": "as the packages state"})


def align(english: dict[str, list[str]], other: dict[str, list[str]]) -> Bitext:
    """Pairs of paragraphs of the descriptions that have as many in both languages, cleaned."""
    shared = [(english[key], other[key]) for key in english if key in other]
    pairs = [pair for source, target in shared if len(source) == len(target) for pair in zip(source, target, strict=True)]
    return clean(Bitext(src=[source for source, _ in pairs], tgt=[target for _, target in pairs]))[0]


def descriptions(index: str) -> Iterator[tuple[str, list[str]]]:
    """`(checksum, paragraphs)` of every entry of a Translation index; the synopsis is the first paragraph."""
    for entry in index.split("\n\n"):
        checksum, paragraphs = "", [""]
        for line in entry.split("\n"):
            if line.startswith("Description-md5: "):
                checksum = line.partition(": ")[2]
            elif line.startswith("Description-"):
                paragraphs = [line.partition(": ")[2], ""]
            elif line.rstrip() == " .":
                paragraphs.append("")
            elif line.startswith(" "):
                paragraphs[-1] += line
        texts = [text for text in map(normalise, paragraphs) if text]
        if checksum and texts:
            yield checksum, texts


def _descriptions(apt: Apt, language: str) -> dict[str, list[str]]:
    # apt writes an underscore that is not a separator as %5f.
    indices = sorted(apt.lists.glob(f"*_i18n_Translation-{language.replace('_', '%5f')}"))
    if not indices:
        raise DataError(f"{apt.lists}: apt-get fetched no descriptions in {language}; does the archive have them?")
    return dict(entry for path in indices for entry in descriptions(path.read_text(encoding="utf-8")))
