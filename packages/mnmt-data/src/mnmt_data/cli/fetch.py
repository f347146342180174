"""`mnmt-data fetch`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from mnmt_data.cli.progress import Out, ProgressBar, report
from mnmt_data.fetch.config import CataloguesConfig, FetchConfig

OPTIONS = Parameter(name="*")


@dataclass(frozen=True, kw_only=True)
class DescriptionsConfig(FetchConfig):
    """Options of `debian-descriptions`, by default an out-of-domain test set."""

    testset: str = "debian"
    """Name of the text in the folder, such as `train` or `test`."""


DEFAULTS, DESCRIPTIONS, CATALOGUES = FetchConfig(), DescriptionsConfig(), CataloguesConfig()

fetch = App(name="fetch", help_format="markdown")


@fetch.command
def libreoffice_help(
    config: Annotated[FetchConfig, OPTIONS] = DEFAULTS, *, out: Out = Path("corpora/libreoffice-help")
) -> None:
    """Fetch the paragraphs of LibreOffice's help, aligned by their ids.

    Args:
        config: Languages, pairs and names.
        out: Corpus folder to write.
    """
    from mnmt_data.fetch.libreoffice_help import fetch_libreoffice_help

    with ProgressBar("files") as progress:
        fetch_libreoffice_help(config, out, report=report, progress=progress)
    print(f"fetched: {out}")


@fetch.command
def libreoffice_interface(
    config: Annotated[FetchConfig, OPTIONS] = DEFAULTS, *, out: Out = Path("corpora/libreoffice-interface")
) -> None:
    """Fetch the strings of LibreOffice's interface: labels, menus, messages and tips.

    Args:
        config: Languages, pairs and names.
        out: Corpus folder to write.
    """
    from mnmt_data.fetch.libreoffice_interface import fetch_libreoffice_interface

    with ProgressBar("files") as progress:
        fetch_libreoffice_interface(config, out, report=report, progress=progress)
    print(f"fetched: {out}")


@fetch.command
def debian_descriptions(
    config: Annotated[DescriptionsConfig, OPTIONS] = DESCRIPTIONS,
    *,
    out: Out = Path("corpora/debian-descriptions"),
) -> None:
    """Fetch Debian's translated package descriptions, aligned paragraph by paragraph.

    Args:
        config: Languages, pairs and names.
        out: Corpus folder to write.
    """
    from mnmt_data.fetch.debian_descriptions import fetch_debian_descriptions

    fetch_debian_descriptions(config, out, report=report)
    print(f"fetched: {out}")


@fetch.command
def gettext(
    config: Annotated[CataloguesConfig, OPTIONS] = CATALOGUES, *, out: Out = Path("corpora/gettext")
) -> None:
    """Fetch the strings of programs from gettext catalogues, or read a folder of .po and .mo files.

    The licence of each package is in licences.tsv in the corpus folder, and its copyright file beside it.

    Args:
        config: Languages, pairs and names; the catalogues, and how their strings become text.
        out: Corpus folder to write.
    """
    from mnmt_data.fetch.gettext_catalogues import fetch_gettext

    with ProgressBar("files") as progress:
        fetch_gettext(config, out, report=report, progress=progress)
    print(f"fetched: {out}")
