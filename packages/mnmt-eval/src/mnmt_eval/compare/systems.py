"""Systems to be compared: trained runs, or plain files of translations, whatever made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mnmt_eval.errors import EvalError
from mnmt_eval.runs.texts import ReferenceText, TextFiles, run_texts, tasks_of_run, tasks_of_runs
from mnmt_eval.runs.translations import read_description, scored_sentences, translations_path
from mnmt_eval.text import read_lines
from mnmt_model.runs import RUN, find_runs


@dataclass(frozen=True, kw_only=True)
class System:
    """Where one system's translations are."""

    name: str
    path: Path
    """A run's folder, or a file with a translation a line."""

    @property
    def is_run(self) -> bool:
        """Whether it is a trained run, with translations of many texts."""
        return (self.path / RUN).is_file()

    def translations_path(self, testset: str, task: str) -> Path:
        """The file with its translations of a text."""
        return translations_path(self.path, testset, task) if self.is_run else self.path


@dataclass(frozen=True, kw_only=True)
class Translations:
    """One system's translations of one text."""

    system: System
    lines: Sequence[str]

    search: str | None = None
    """Signature of a run's search; None where nobody says."""


@dataclass(frozen=True, kw_only=True)
class TranslatedText:
    """What several systems made of one text."""

    text: ReferenceText
    translations: tuple[Translations, ...]

    @property
    def names(self) -> list[str]:
        """Of the systems."""
        return [made.system.name for made in self.translations]

    @property
    def searches(self) -> dict[str, str]:
        """{system: signature of its search}, of runs that say so."""
        return {made.system.name: made.search for made in self.translations if made.search is not None}


def name_systems(arguments: Sequence[str]) -> list[System]:
    """Systems as they are named on a command line.

    Args:
        arguments: Each a file, a run, a folder of runs, or a named file or run: `ours=out.de`.

    Returns:
        The systems; those without a name are called after their path, as little of it as tells them apart.

    Raises:
        EvalError: If something is neither, or two systems have one name.
    """
    given = [_split_name(argument) for argument in arguments]
    paths = [(name, path) for name, place in given for path in _systems_at(place, named=bool(name))]
    shortest = iter(_shortest_names([path for name, path in paths if not name]))
    systems = [System(name=name or next(shortest), path=path) for name, path in paths]
    for name, count in Counter(system.name for system in systems).items():
        if count > 1:
            path = next(system.path for system in systems if system.name == name)
            raise EvalError(f"{count} systems are called {name!r}; name them apart, as in ours={path}.")
    return systems


def open_systems(
    systems: Sequence[System], *, testset: str, pair: str | None = None, files: TextFiles | None = None
) -> list[TranslatedText]:
    """What the systems made of each text.

    Args:
        systems: What to open.
        testset: The runs' test set.
        pair: One task of the runs; by default all tasks that every run has translated.
        files: Sources and references; by default those of the runs' data.

    Raises:
        EvalError: If there is no text to compare with, or translations are missing, too few or too many.
        DataError: If the runs' data cannot be read.
        OSError: If a file is missing.
    """
    runs = [system.path for system in systems if system.is_run]
    if files is not None:
        return [_open(replace(files.read(testset), tasks=tasks_of_runs(runs)), systems)]
    if not any(system.is_run for system in systems):
        raise EvalError("plain files are compared with references; name them with --reference and --pair.")
    if pair is None and not all(system.is_run for system in systems):
        raise EvalError("a plain file is of one task; name it with --pair, as in --pair en-de.")
    tasks = [pair] if pair is not None else _common_tasks(runs, testset)
    return [_open(run_texts(runs, testset, task), systems) for task in tasks]


def _open(text: ReferenceText, systems: Sequence[System]) -> TranslatedText:
    translations = tuple(
        Translations(
            system=system,
            lines=_read(system, text.testset, text.task),
            search=_search(system, text.testset, text.task),
        )
        for system in systems
    )
    scored = {scored_sentences(made.search) for made in translations}
    if len(scored) > 1 and all(system.is_run for system in systems):
        raise EvalError(
            f"{text.testset} {text.task}: the runs were scored on different sentences; score them with the "
            "same --max-sentences."
        )
    if len(scored) == 1 and (count := scored.pop()) is not None:
        text = text.first(count)
    for made in translations:
        if len(made.lines) != len(text):
            path = made.system.translations_path(text.testset, text.task)
            raise EvalError(
                f"{path}: must have as many lines as there are references ({len(text)}), "
                f"but has {len(made.lines)}."
            )
    return TranslatedText(text=text, translations=translations)


def _read(system: System, testset: str, task: str) -> list[str]:
    path = system.translations_path(testset, task)
    if system.is_run and not path.is_file():
        raise EvalError(f"{path}: no translations yet; run `mnmt-eval score {system.path}` first.")
    return read_lines(path)


def _search(system: System, testset: str, task: str) -> str | None:
    description = read_description(system.path, testset, task) if system.is_run else None
    return str(description["search"]) if description and "search" in description else None


def _common_tasks(runs: Sequence[Path], testset: str) -> list[str]:
    """Tasks that every run has translated, in the order of the first run's data."""
    tasks = [
        task
        for task in tasks_of_run(runs[0], testset)
        if all(translations_path(run, testset, task).is_file() for run in runs)
    ]
    if not tasks:
        raise EvalError(
            f"no task of test set {testset!r} is translated by every run; run `mnmt-eval score` first."
        )
    return tasks


def _split_name(argument: str) -> tuple[str, Path]:
    name, equals, place = argument.partition("=")
    if equals and name and place and not Path(argument).exists():
        return name, Path(place)
    return "", Path(argument)


def _systems_at(path: Path, *, named: bool) -> list[Path]:
    if not path.exists():
        raise EvalError(f"{path}: no such file or run.")
    if not path.is_dir():
        return [path]
    runs = find_runs([path])
    if named and len(runs) > 1:
        raise EvalError(f"{path}: holds {len(runs)} runs, so one name is not enough for them.")
    return runs


def _shortest_names(paths: Sequence[Path]) -> list[str]:
    """For each path its last parts, as few as tell all of them apart."""
    parts = [path.absolute().parts for path in paths]
    depth = 1
    while depth < max(map(len, parts), default=0) and len({p[-depth:] for p in parts}) < len(set(parts)):
        depth += 1
    return ["/".join(p[-depth:]) for p in parts]
