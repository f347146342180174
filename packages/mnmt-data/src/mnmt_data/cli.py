"""The command line `mnmt-data`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import App, Parameter, validators

from mnmt_data.console import run_app
from mnmt_data.errors import DataError
from mnmt_data.study import read_study

Count = Annotated[int, Parameter(validator=validators.Number(gte=0))]
Json = Annotated[bool, Parameter("--json", negative="")]
Out = Annotated[Path, Parameter(("--out", "-o"))]

app = App(name="mnmt-data", help="Corpora to clean splits, a shared vocabulary and token shards.")
fetch = App(name="fetch", help="Fetch parallel text that Debian distributes.")
app.command(fetch)


@app.command
def prepare(study: Path, *, out: Annotated[Path | None, Parameter(("--out", "-o"))] = None) -> None:
    """Prepare a study's data; what is there already and has not changed is used again.

    Args:
        study: the study's TOML file.
        out: folder of the study's results; `results/NAME` by default.
    """
    from mnmt_data.inspection import describe, table
    from mnmt_data.prepare import prepare_study

    described = read_study(study)
    prepared = prepare_study(described, out or Path("results") / described.name, report=_say)
    print(table(describe(prepared, samples=0)))
    print(f"prepared: {prepared.folder}")


@app.command
def inspect(prepared: Path, *, samples: Count = 3, as_json: Json = False) -> None:
    """Show what prepared data hold: counts, what the filters dropped, and some pairs.

    Args:
        prepared: folder of prepared data, such as results/NAME/data.
        samples: test pairs of each task to show.
        as_json: print JSON.
    """
    from mnmt_data.inspection import describe, table
    from mnmt_data.prepared import open_prepared

    description = describe(open_prepared(prepared), samples=samples)
    print(json.dumps(description, ensure_ascii=False) if as_json else table(description))


@fetch.command
def libreoffice_help(*, langs: str = "en,de,fr,zh-CN", out: Out = Path("corpora/libreoffice-help")) -> None:
    """The paragraphs of LibreOffice's help, aligned by their ids.

    Args:
        langs: languages, English first, separated by commas.
        out: corpus folder to write.
    """
    from mnmt_data.fetch.libreoffice import fetch_libreoffice_help

    fetch_libreoffice_help(_languages(langs), out, report=_say)
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

    fetch_debian_descriptions(_languages(langs), out, report=_say)
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


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> NoReturn:
    """Runs the command line."""
    run_app(app, prog="mnmt-data", errors=(DataError,))
