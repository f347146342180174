"""`mnmt-data fetch`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from mnmt_data.cli.app import Out, app, say
from mnmt_data.fetch.config import FetchConfig

OPTIONS = Parameter(name="*")


@dataclass(frozen=True, kw_only=True)
class DescriptionsConfig(FetchConfig):
    """The options of `debian-descriptions`, an out-of-domain test set unless it is called otherwise."""

    testset: str = "debian"
    """Name of the text in the folder, such as `train` or `test`."""


USUAL, DESCRIPTIONS = FetchConfig(), DescriptionsConfig()

fetch = App(name="fetch", help="Fetch parallel text that Debian distributes, translated from English.")
app.command(fetch)


@fetch.command
def libreoffice_help(
    request: Annotated[FetchConfig, OPTIONS] = USUAL, *, out: Out = Path("corpora/libreoffice-help")
) -> None:
    """The paragraphs of LibreOffice's help, aligned by their ids.

    Args:
        request: Languages, pairs and names.
        out: Corpus folder to write.
    """
    from mnmt_data.fetch.libreoffice_help import fetch_libreoffice_help

    fetch_libreoffice_help(request, out, report=say)
    print(f"fetched: {out}")


@fetch.command
def libreoffice_interface(
    request: Annotated[FetchConfig, OPTIONS] = USUAL, *, out: Out = Path("corpora/libreoffice-interface")
) -> None:
    """The strings of LibreOffice's interface: labels, menus, messages and tips.

    Args:
        request: Languages, pairs and names.
        out: Corpus folder to write.
    """
    from mnmt_data.fetch.libreoffice_interface import fetch_libreoffice_interface

    fetch_libreoffice_interface(request, out, report=say)
    print(f"fetched: {out}")


@fetch.command
def debian_descriptions(
    request: Annotated[DescriptionsConfig, OPTIONS] = DESCRIPTIONS,
    *,
    out: Out = Path("corpora/debian-descriptions"),
) -> None:
    """Debian's translated package descriptions, aligned paragraph by paragraph.

    Args:
        request: Languages, pairs and names.
        out: Corpus folder to write.
    """
    from mnmt_data.fetch.debian_descriptions import fetch_debian_descriptions

    fetch_debian_descriptions(request, out, report=say)
    print(f"fetched: {out}")
