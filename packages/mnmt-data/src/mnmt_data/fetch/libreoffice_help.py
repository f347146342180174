"""LibreOffice's help: the same pages in every language, with the same ids of paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from lxml import etree, html  # type: ignore[import-untyped]

from mnmt_data.fetch.apt import Progress, Report, package_version
from mnmt_data.fetch.config import FetchConfig
from mnmt_data.fetch.languages import ENGLISH
from mnmt_data.fetch.libreoffice import LICENCE, LanguagePackages, TextUnits, read_languages, read_units
from mnmt_data.fetch.parallel_text import ParallelText, check_folder, publish
from mnmt_data.filters import normalise

SOURCE = "LibreOffice help"

_PAGE = re.compile(r"/help/(?P<language>[^/]+)/text/(?P<file>.+\.html)$")
_PARAGRAPHS = etree.XPath(
    "//*[@id='DisplayArea']"
    "//*[self::p or self::h1 or self::h2 or self::h3 or self::h4 or self::h5 or self::h6][@id]"
)
_VARIANTS = etree.XPath(".//span[@class='switchinline']")


def fetch_libreoffice_help(
    config: FetchConfig, folder: Path, *, report: Report, progress: Progress = lambda stage, files: None
) -> None:
    """Write the paragraphs of LibreOffice's help, aligned by page and id, into the corpus folder `folder`.

    Args:
        config: Languages and pairs.
        folder: Corpus folder to write.
        report: Called with a line at each stage.
        progress: Called with the name of a stage and the number of files that it has just done.

    Raises:
        DataError: If a language has no such package, or it cannot be fetched.
    """
    check_folder(folder)
    packages = LanguagePackages(
        "libreoffice-help-", folder.parent / ".downloads", report=report, progress=progress
    )
    selection = config.select(packages.languages, corpus=SOURCE)
    files = packages.download(list(dict.fromkeys([ENGLISH, *selection.names.values()])))
    text = ParallelText(read_help(files[ENGLISH], progress=progress))
    for code, units in read_languages(files, selection, partial(read_help, progress=progress), report=report):
        report(f"{code}: {text.add(code, units):,} paragraphs translated")
    versions = {file.name.partition("_")[0]: package_version(file) for file in files.values()}
    provenance = {"source": SOURCE, "packages": versions, "licence": LICENCE}
    publish(folder, text, config, selection.only(text.codes), provenance=provenance, report=report)


def read_help(package: Path, *, progress: Progress = lambda stage, files: None) -> TextUnits:
    """Read the paragraphs of a help package that have an id: {(page, id): text}.

    Raises:
        DataError: If the package cannot be unpacked.
    """
    return read_units(package, _PAGE, _page_units, progress=progress)


def _page_units(page: str, content: bytes) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, text in page_paragraphs(content):
        yield (page, key), text


def page_paragraphs(page: bytes) -> Iterator[tuple[str, str]]:
    """Yield `(id, text)` of the headings and paragraphs of one HTML page that have both.

    Text that depends on the system or program is taken in its default form, or else in the first.
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
