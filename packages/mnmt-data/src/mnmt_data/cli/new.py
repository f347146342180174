"""`mnmt-data new`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

from mnmt_data.cli.progress import Out, report
from mnmt_data.errors import UserError

Fetched = Literal["libreoffice-help", "libreoffice-interface", "gettext"]


def new(
    *,
    tasks: str,
    corpus: Path | None = None,
    fetch: Fetched | None = None,
    minutes: Annotated[float, Parameter(validator=validators.Number(gte=1, lte=10_000))] = 10,
    name: str | None = None,
    out: Out | None = None,
) -> None:
    """Write a study of your text that runs as it is, for a time on this machine.

    It trains models of several sizes and mixtures, and ends in the weights to train a larger one at. A few
    steps are measured first, so other work on the machine makes the models smaller.

    Args:
        tasks: Language pairs such as `en-de,en-fr`.
        corpus: Folder with the text: `train.en-de.en` and `train.en-de.de`, or another form of them.
        fetch: Text to fetch in its place, unless it is in `corpora/` already.
        minutes: Time for all commands from `prepare` to the report.
        name: Name of the study; by default that of the corpus.
        out: The file to write; `studies/NAME.toml` by default.
    """
    from mnmt_data.prepare.new_study import Wish, write_new_study
    from mnmt_data.readers import canonical_task

    pairs = tuple(canonical_task(task.strip()) for task in tasks.split(","))
    if (corpus is None) == (fetch is None):
        raise UserError("give the text as --corpus FOLDER or --fetch SOURCE, one of them.")
    folder = corpus or Path("corpora") / str(fetch)
    name = name or folder.resolve().name
    path = out or Path("studies") / f"{name}.toml"
    wish = Wish(name=name, tasks=pairs, corpus=folder, minutes=minutes, out=path)
    if fetch is not None:
        _fetch(fetch, pairs, folder)
    runs = write_new_study(wish, report=report)
    sizes = f"{runs.sizes[0]:,} to {runs.sizes[-1]:,} parameters"
    print(f"{path}: {runs.count} models of {sizes}, up to {runs.steps:,} steps each")
    print(f"training: {runs.seconds / 60:.1f} of {minutes:g} minutes, if this machine stays as busy as now")
    print(f"next: mnmt-data prepare {path}; mnmt-model sweep {path};")
    print(f"      mnmt-eval score results/{name}/runs; mnmt-laws report results/{name}/runs")


def _fetch(source: Fetched, tasks: Sequence[str], folder: Path) -> None:
    """Fetch the text of the tasks into a folder, unless it is there."""
    from mnmt_data.cli.fetch import gettext, libreoffice_help, libreoffice_interface
    from mnmt_data.fetch.config import CataloguesConfig, FetchConfig
    from mnmt_data.readers import find_readers

    if folder.is_dir() and all(find_readers(folder, "train", task) for task in tasks):
        return
    sides = [task.split("-") for task in tasks]
    pairs = {frozenset(pair): "-".join(pair) for pair in sides}  # one serves both directions
    langs = dict.fromkeys(language for pair in sides for language in pair)
    names, tasks_named = ",".join(langs), ",".join(pairs.values())
    if source == "gettext":
        gettext(CataloguesConfig(langs=names, pairs=tasks_named), out=folder)
    else:
        command = libreoffice_help if source == "libreoffice-help" else libreoffice_interface
        command(FetchConfig(langs=names, pairs=tasks_named), out=folder)
