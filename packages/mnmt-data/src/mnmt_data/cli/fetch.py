"""`mnmt-data fetch`."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from mnmt_data.cli.app import Out, app, say
from mnmt_data.errors import DataError

fetch = App(name="fetch", help="Fetch parallel text that Debian distributes.")
app.command(fetch)


@fetch.command
def libreoffice_help(*, langs: str = "en,de,fr,zh-CN", out: Out = Path("corpora/libreoffice-help")) -> None:
    """The paragraphs of LibreOffice's help, aligned by their ids.

    Args:
        langs: languages, English first, separated by commas.
        out: corpus folder to write.
    """
    from mnmt_data.fetch.libreoffice import fetch_libreoffice_help

    fetch_libreoffice_help(_languages(langs), out, report=say)
    print(f"fetched: {out}")


@fetch.command
def debian_descriptions(
    *, langs: str = "en,de,fr,zh-CN", out: Out = Path("corpora/debian-descriptions")
) -> None:
    """Debian's translated package descriptions, aligned paragraph by paragraph.

    Args:
        langs: languages, English first, separated by commas.
        out: corpus folder to write.
    """
    from mnmt_data.fetch.debian import fetch_debian_descriptions

    fetch_debian_descriptions(_languages(langs), out, report=say)
    print(f"fetched: {out}")


def _languages(langs: str) -> tuple[str, ...]:
    """Languages other than English.

    Raises:
        DataError: if English is not the first, or there is no other.
    """
    english, *others = [language.strip() for language in langs.split(",")]
    if english != "en" or not others or len(set(others)) != len(others):
        raise DataError(f"--langs must be 'en' and other languages, such as en,de,zh-CN, but is {langs!r}.")
    return tuple(others)
