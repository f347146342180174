"""LibreOffice's help: the same pages in every language, each paragraph under the same id."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from lxml import etree, html  # type: ignore[import-untyped]
from tqdm import tqdm

from mnmt_data.clean import clean, normalise
from mnmt_data.corpus import Bitext
from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import Apt
from mnmt_data.fetch.publish import check_codes, code, publish

TESTSET = "train"
LICENCE = "MPL-2.0, as the packages state"

Paragraphs = dict[tuple[str, str], str]
"""{(page, id): text}"""

_PARAGRAPHS = etree.XPath(
    "//*[@id='DisplayArea']"
    "//*[self::p or self::h1 or self::h2 or self::h3 or self::h4 or self::h5 or self::h6][@id]"
)
_VARIANTS = etree.XPath(".//span[@class='switchinline']")


def fetch_libreoffice_help(
    languages: tuple[str, ...], folder: Path, *, report: Callable[[str], None]
) -> None:
    """Writes `train.en-XX` of every language into the corpus folder `folder`.

    Args:
        languages: other than English (`de`, `zh-CN`).
        folder: corpus folder to write.
        report: called with a line at each stage.

    Raises:
        DataError: if a language has no such package, or it cannot be fetched.
    """
    check_codes(languages)
    names = {language: f"libreoffice-help-{language.lower()}" for language in ("en-US", *languages)}
    apt = Apt(folder.parent / ".downloads")
    report(f"fetching {', '.join(names.values())}")
    apt.update()
    files = dict(zip(names, apt.download(list(names.values())), strict=True))
    pages = {language: paragraphs(file) for language, file in files.items()}
    bitexts = {}
    for language in languages:
        task = f"en-{code(language)}"
        bitexts[task] = align(pages["en-US"], pages[language])
        report(f"{task}: {len(bitexts[task]):,} pairs")
    versions = {name: package_version(files[language]) for language, name in names.items()}
    provenance = {"source": "LibreOffice help", "packages": versions, "licence": LICENCE}
    publish(folder, TESTSET, bitexts, provenance)


def align(english: Paragraphs, other: Paragraphs) -> Bitext:
    """Pairs of the paragraphs that both languages have, cleaned, and so without those left in English."""
    shared = [key for key in english if key in other]
    return clean(Bitext(src=[english[key] for key in shared], tgt=[other[key] for key in shared]))[0]


def paragraphs(package: Path) -> Paragraphs:
    """Every paragraph of a help package that has an id.

    Raises:
        DataError: if the package cannot be unpacked or holds no help pages.
    """
    found: Paragraphs = {}
    name = package.name.partition("_")[0]
    try:
        for page, content in tqdm(_pages(package), desc=name, unit=" pages", disable=None):
            for key, text in page_paragraphs(content):
                found.setdefault((page, key), text)
    except tarfile.TarError as error:
        raise DataError(f"{package}: cannot be unpacked ({error}); delete it and fetch again.") from error
    if not found:
        raise DataError(f"{package}: holds no help pages; is it a libreoffice-help package?")
    return found


def page_paragraphs(page: bytes) -> Iterator[tuple[str, str]]:
    """`(id, text)` of the headings and paragraphs of one HTML page that have an id and a text.

    Where the wording depends on the system or the program, it is the default one, or else the first.
    """
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True)
    document = html.document_fromstring(page, parser=parser)
    for element in _PARAGRAPHS(document):
        for variants in _VARIANTS(element):
            _keep_one(variants)
        if text := normalise(element.text_content()):
            yield element.get("id"), text


def _keep_one(variants: html.HtmlElement) -> None:
    default = [child for child in variants if child.get("id", "").startswith("default")]
    for child in list(variants):
        if child is not (default or list(variants))[0]:
            child.drop_tree()


def _pages(package: Path) -> Iterator[tuple[str, bytes]]:
    """`(page, content)` of the HTML files, with the page's path below the folder of its language."""
    unpack = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with (
        subprocess.Popen(unpack, stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as archive,
    ):
        for member in archive:
            _, text, page = member.name.partition("/text/")
            if text and page.endswith(".html") and (file := archive.extractfile(member)):
                yield page, file.read()


def package_version(package: Path) -> str:
    """Version in the name of a package's file, where apt writes a colon as %3a."""
    return package.name.split("_")[1].replace("%3a", ":")
