"""Systems to compare: trained runs, or files of translations by any system."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from mnmt_data.errors import folder_holds
from mnmt_eval.compare.config import split_name
from mnmt_eval.errors import EvalError, require_runs
from mnmt_eval.runs.run_files import (
    RUN,
    check_translations,
    read_description,
    scored_sentences,
    translations_path,
)
from mnmt_eval.runs.texts import ReferenceText, TextFiles, run_text, tasks_of_run, tasks_of_runs
from mnmt_eval.text import NamedLines, read_lines, read_text, remarks_on

logger = logging.getLogger(__name__)

_HIDDEN = re.compile(r"\..*|.*\.record\.json")
_NO_OUTPUT = re.compile(
    r".*~|(readme|licen[cs]e|copying|changelog|makefile)(\..*)?"
    r"|.*\.(md|rst|log|tmp|bak|orig|lock|sh|py|toml|ya?ml|pdf|html?)",
    re.I,
)
"""Names of files in a folder of outputs that are no outputs; whoever names such a file itself means it."""

FEW_DOCUMENTS = 10
"""Fewer documents than these are remarked."""


@dataclass(frozen=True, kw_only=True)
class System:
    """A system and the place of its translations."""

    name: str
    path: Path
    """A run's folder, or a file with a translation a line, or a table with a column of translations."""
    column: str | None = None
    """The column of the table; None for a plain file."""

    @property
    def is_run(self) -> bool:
        """Whether it is a trained run, with translations of many texts."""
        return (self.path / RUN).is_file()

    def translations_path(self, testset: str, task: str) -> Path:
        """Return the file with its translations of a text."""
        return translations_path(self.path, testset, task) if self.is_run else self.path

    def place(self, testset: str, task: str) -> str:
        """Return the name of that file in messages, with the column."""
        path = self.translations_path(testset, task)
        return f"{path} (column {self.column})" if self.column else str(path)


@dataclass(frozen=True, kw_only=True)
class SystemOutput:
    """One system's translations of one text."""

    system: System
    lines: Sequence[str]
    """A translation a line."""
    search: str | None = None
    """The signature of a run's search; None if unknown."""


@dataclass(frozen=True, kw_only=True)
class TranslatedText:
    """A text with several systems' translations."""

    text: ReferenceText
    outputs: tuple[SystemOutput, ...]

    @property
    def names(self) -> list[str]:
        """The systems' names."""
        return [output.system.name for output in self.outputs]

    @property
    def searches(self) -> dict[str, str]:
        """{system: signature of its search} of the runs that state it."""
        return {output.system.name: output.search for output in self.outputs if output.search is not None}

    @cached_property
    def remarks(self) -> Sequence[str]:
        """A line for whatever makes scores mislead; see `mnmt_eval.text.remarks_on`."""
        text = self.text
        names = text.reference_names or [f"the references of {text.name}"] * len(text.references)
        outputs = [
            NamedLines(name=output.system.place(text.testset, text.task), lines=output.lines)
            for output in self.outputs
        ]
        references = [
            NamedLines(name=name, lines=lines) for name, lines in zip(names, text.references, strict=True)
        ]
        return [*_few_documents(text), *remarks_on(outputs, references, text.src)]


def _few_documents(text: ReferenceText) -> Iterator[str]:
    """Yield a remark if there are few documents to draw and exchange."""
    if 0 < (count := len(set(text.documents))) < FEW_DOCUMENTS:
        least = min(1.0, 2 / 2**count)
        yield f"{text.name}: has {count} documents, so no p is below {least:.2g}, and few differences show"


def name_systems(arguments: Sequence[str], columns: Sequence[str] = ()) -> list[System]:
    """Return the systems that a command line names.

    Args:
        arguments: Each is a file, a folder of files, a run, a folder of runs, or a named file or run:
            `ours=out.de`.
        columns: The columns with translations, if files are tables; each is a system.

    Returns:
        The systems; a system without a name is called after the shortest end of its path that is unique, and
        after its column if there are several.

    Raises:
        EvalError: If nothing is at such a path, or two systems have one name.
    """
    pairs = [split_name(argument) for argument in arguments]
    paths = [(name, path) for name, place in pairs for path in _systems_at(place, named=bool(name))]
    shortest = iter(_shortest_names([path for name, path in paths if not name]))
    whole = [System(name=name or next(shortest), path=path) for name, path in paths]
    systems = [system for each in whole for system in _columns_of(each, columns, len(whole) == 1)]
    if columns and all(system.column is None for system in systems):
        raise EvalError(f"--column {columns[0]}: is of use only with tables, but {arguments[0]} is none.")
    _check_names(systems)
    return systems


def _columns_of(system: System, columns: Sequence[str], is_alone: bool) -> list[System]:
    """Return the systems in the columns of a file; the system itself if it is a run or no table."""
    if not columns or system.is_run:
        return [system]
    if len(columns) == 1:
        return [replace(system, column=columns[0])]
    prefix = "" if is_alone else f"{system.name}:"
    return [replace(system, name=f"{prefix}{column}", column=column) for column in columns]


def _check_names(systems: Sequence[System]) -> None:
    """Refuse two systems with one name."""
    for name, count in Counter(system.name for system in systems).items():
        if count > 1:
            path = next(system.path for system in systems if system.name == name)
            raise EvalError(f"{count} systems are called {name!r}; name them apart, as in ours={path}.")


def open_systems(
    systems: Sequence[System], *, testset: str, task: str | None = None, files: TextFiles | None = None
) -> list[TranslatedText]:
    """Read the systems' translations of each text.

    Args:
        systems: The systems.
        testset: The runs' test set.
        task: One task of the runs; by default all tasks that every run has translated.
        files: Sources and references; by default those of the runs' data.

    Raises:
        EvalError: If there is no text to compare with, or translations are missing, too few or too many.
        DataError: If the runs' data cannot be read.
        OSError: If a file is missing.
    """
    runs = [system.path for system in systems if system.is_run]
    if files is not None:
        if runs and not files.task:
            raise EvalError(f"{runs[0]}: has many tasks; name one with --task, as in --task en-de.")
        translated = _open(replace(files.read(testset), tasks=tasks_of_runs(runs)), systems)
        if files.references:
            _check_references(translated, files.references[0])
        return [translated]
    if not any(system.is_run for system in systems):
        raise EvalError("plain files are compared with references; name them with --reference.")
    if task is None and not all(system.is_run for system in systems):
        raise EvalError("a plain file is of one task; name it with --task, as in --task en-de.")
    tasks = [task] if task is not None else _common_tasks(runs, testset)
    return [_open(run_text(runs, testset, name), systems) for name in tasks]


def _check_references(translated: TranslatedText, path: Path) -> None:
    """Refuse blank references of a sentence, unless its source, or without sources every output, is blank."""
    text, outputs = translated.text, [output.lines for output in translated.outputs]
    for number, references in enumerate(zip(*text.references, strict=True)):
        others = [text.src[number]] if text.src else [lines[number] for lines in outputs]
        if not any(map(str.strip, references)) and any(map(str.strip, others)):
            raise EvalError(
                f"{path}:{number + 1}: must have a reference, but is blank; remove the line from all files."
            )


def _open(text: ReferenceText, systems: Sequence[System]) -> TranslatedText:
    outputs = tuple(
        SystemOutput(
            system=system,
            lines=_read(system, text.testset, text.task),
            search=_search(system, text.testset, text.task),
        )
        for system in systems
    )
    if not text.references and not text.src:
        text = replace(text, lines=len(outputs[0].lines))
    scored = {scored_sentences(output.search) for output in outputs}
    if len(scored) > 1 and all(system.is_run for system in systems):
        raise EvalError(
            f"{text.name}: the runs were scored on different sentences; score them with the "
            "same --max-sentences."
        )
    if len(scored) == 1 and (count := scored.pop()) is not None:
        text = text.head(count)
    for output in outputs:
        _check_count(output, text)
    return TranslatedText(text=text, outputs=outputs)


def _check_count(output: SystemOutput, text: ReferenceText) -> None:
    count, path = len(output.lines), output.system.translations_path(text.testset, text.task)
    if count == len(text):
        return
    if count == scored_sentences(output.search):
        raise EvalError(
            f"{path}: was scored with --max-sentences {count}, but there are {len(text)} references; score "
            "it without, or name the references of just these sentences with --reference."
        )
    hint = ""
    if count == len(text) + 1 and not output.lines[-1].strip():
        hint = ", of which the last is blank"
    elif count and count % len(text) == 0:
        hint = f", {count // len(text)} times as many: if these are candidates, `mnmt-eval rerank` chooses"
    of = "reference" if text.references else "sentence"
    raise EvalError(f"{path}: must have {len(text)} lines, one for each {of}, but has {count}{hint}.")


def _read(system: System, testset: str, task: str) -> list[str]:
    path = system.translations_path(testset, task)
    if system.is_run and not path.is_file():
        raise EvalError(f"{path}: no translations yet; run `mnmt-eval score {system.path}` first.")
    if system.is_run:
        check_translations(system.path, testset, task)
        return read_lines(path)
    return read_text(path, system.column)


def _search(system: System, testset: str, task: str) -> str | None:
    description = read_description(system.path, testset, task) if system.is_run else None
    return description.search if description else None


def _common_tasks(runs: Sequence[Path], testset: str) -> list[str]:
    """Return the tasks that every run has translated, in the order of the first run's data."""
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


def _systems_at(path: Path, *, named: bool) -> list[Path]:
    """Return the file or run of a path, or those in its folder."""
    if not path.exists():
        raise EvalError(f"{path}: no such file or run; {folder_holds(path)}.")
    if not path.is_dir():
        return [path]
    if (path / RUN).is_file() or any(path.glob(f"*/{RUN}")):
        require_runs(f"{path}: a trained run")
        from mnmt_model.runs import find_runs

        what, places = "runs", find_runs([path])
    else:
        what, places = "files", _outputs_in(path)
    if named and len(places) > 1:
        raise EvalError(f"{path}: holds {len(places)} {what}, so one name is not enough for them.")
    return places


def _outputs_in(folder: Path) -> list[Path]:
    """Return the files of a folder that are outputs by their names, and log the names of the others."""
    files = sorted(each for each in folder.iterdir() if each.is_file() and not _HIDDEN.fullmatch(each.name))
    outputs = [each for each in files if not _NO_OUTPUT.fullmatch(each.name)]
    others = ", ".join(each.name for each in files if each not in outputs)
    if not outputs:
        left_out = f" but {others}" if others else ""
        raise EvalError(f"{folder}: holds neither runs nor files with translations{left_out}.")
    if others:
        logger.warning("%s: %s left out; name a file itself to compare it", folder, others)
    return outputs


def _shortest_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the paths, of equal length, that tell all of them apart."""
    parts = [path.absolute().parts for path in paths]
    depth = 1
    while depth < max(map(len, parts), default=0) and len({p[-depth:] for p in parts}) < len(set(parts)):
        depth += 1
    return ["/".join(p[-depth:]) for p in parts]
