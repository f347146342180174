"""`mnmt-data fetch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from mnmt_data.cli.app import Out, app, say
from mnmt_data.fetch.request import Request

LANGS = "en,de,fr,zh-CN"
Flag = Annotated[bool, Parameter(negative="")]

fetch = App(name="fetch", help="Fetch parallel text that Debian distributes, translated from English.")
app.command(fetch)


@fetch.command
def libreoffice_help(
    *,
    langs: str = LANGS,
    pairs: str | None = None,
    multiway: Flag = False,
    testset: str = "train",
    out: Out = Path("corpora/libreoffice-help"),
) -> None:
    """The paragraphs of LibreOffice's help, aligned by their ids.

    Args:
        langs: languages, separated by commas, or `all`; variants of one language side by side keep their
            region in the names of tasks: `zh` alone, but `zh_CN` and `zh_TW`.
        pairs: pairs of them such as `en-de,de-fr`, or `all`; by default English with every other language.
        multiway: only what is translated into all languages; row i is then the same in every pair.
        testset: name of the text in the folder, such as `train` or `test`.
        out: corpus folder to write.
    """
    from mnmt_data.fetch.libreoffice_help import fetch_libreoffice_help

    request = Request(langs=langs, pairs=pairs, multiway=multiway, testset=testset)
    fetch_libreoffice_help(request, out, report=say)
    print(f"fetched: {out}")


@fetch.command
def libreoffice_interface(
    *,
    langs: str = LANGS,
    pairs: str | None = None,
    multiway: Flag = False,
    testset: str = "train",
    out: Out = Path("corpora/libreoffice-interface"),
) -> None:
    """The strings of LibreOffice's interface: labels, menus, messages and tips.

    Args:
        langs: languages, separated by commas, or `all`; variants of one language side by side keep their
            region in the names of tasks: `zh` alone, but `zh_CN` and `zh_TW`.
        pairs: pairs of them such as `en-de,de-fr`, or `all`; by default English with every other language.
        multiway: only what is translated into all languages; row i is then the same in every pair.
        testset: name of the text in the folder, such as `train` or `test`.
        out: corpus folder to write.
    """
    from mnmt_data.fetch.libreoffice_interface import fetch_libreoffice_interface

    request = Request(langs=langs, pairs=pairs, multiway=multiway, testset=testset)
    fetch_libreoffice_interface(request, out, report=say)
    print(f"fetched: {out}")


@fetch.command
def debian_descriptions(
    *,
    langs: str = LANGS,
    pairs: str | None = None,
    multiway: Flag = False,
    testset: str = "debian",
    out: Out = Path("corpora/debian-descriptions"),
) -> None:
    """Debian's translated package descriptions, aligned paragraph by paragraph.

    Args:
        langs: languages, separated by commas, or `all`; variants of one language side by side keep their
            region in the names of tasks: `zh` alone, but `zh_CN` and `zh_TW`.
        pairs: pairs of them such as `en-de,de-fr`, or `all`; by default English with every other language.
        multiway: only what is translated into all languages; row i is then the same in every pair.
        testset: name of the text in the folder, such as `train` or `test`.
        out: corpus folder to write.
    """
    from mnmt_data.fetch.debian import fetch_debian_descriptions

    request = Request(langs=langs, pairs=pairs, multiway=multiway, testset=testset)
    fetch_debian_descriptions(request, out, report=say)
    print(f"fetched: {out}")
