"""Texts and systems as command lines name them: files, columns, sacreBLEU's test sets, WMT's folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mnmt_eval.compare.layouts import SubmittedText, read_submissions
from mnmt_eval.compare.sacrebleu_testsets import PREFIX, sacrebleu_files
from mnmt_eval.compare.systems import (
    System,
    TranslatedText,
    check_names,
    name_systems,
    open_systems,
    split_name,
)
from mnmt_eval.errors import EvalError
from mnmt_eval.runs.texts import TextFiles


@dataclass(frozen=True, kw_only=True)
class TextArguments:
    """What a command line says of the text that systems translated; everything may be left out."""

    references: tuple[Path, ...] = ()
    """Files with references, or `sacrebleu:NAME`, a test set that sacreBLEU has fetched."""
    source: Path | None = None
    task: str | None = None
    testset: str = "test"
    columns: tuple[str, ...] = ()
    """Columns with translations, if the systems' files are tables."""
    reference_columns: tuple[str, ...] = ()
    source_column: str | None = None


def open_texts(systems: Sequence[str], arguments: TextArguments) -> list[TranslatedText]:
    """Read the texts that a command line names, with the systems' translations of each.

    Args:
        systems: Files, folders of files, runs, folders of runs, or one folder in WMT's layout; `NAME=FILE`.
        arguments: What is said of the text.

    Raises:
        EvalError: If something is missing, or files do not belong together.
        DataError: If the data of runs cannot be read.
        OSError: If a file is missing.
    """
    places = {system: read_submissions(split_name(system)[1]) for system in systems}
    submitted = {system: texts for system, texts in places.items() if texts is not None}
    others = name_systems([each for each in systems if each not in submitted], arguments.columns)
    if arguments.columns and all(system.column is None for system in others):
        raise EvalError(
            f"--column {arguments.columns[0]}: is of use only with tables, but {systems[0]} is none."
        )
    if submitted:
        translated = _open_submitted(submitted, others, arguments)
        return (
            [_submitted_first(each, others) for each in translated] if systems[0] in submitted else translated
        )
    files, testset = _text_files(others, arguments), arguments.testset
    if (name := _sacrebleu_name(arguments)) is not None and not any(system.is_run for system in others):
        testset = name
    return open_systems(others, testset=testset, task=arguments.task, files=files)


def _open_submitted(
    submitted: dict[str, list[SubmittedText]], others: Sequence[System], arguments: TextArguments
) -> list[TranslatedText]:
    """Open the language pairs of a folder in WMT's layout, each with its systems and the others."""
    (folder, texts), *more = submitted.items()
    if more:
        raise EvalError(
            f"{more[0][0]}: only one folder in WMT's layout can be compared, and {folder} is one."
        )
    if "=" in folder and not Path(folder).exists():
        raise EvalError(f"{folder}: the systems of a folder in WMT's layout have their names.")
    selected = [text for text in texts if arguments.task in (None, text.task)]
    of_testset = [text for text in selected if text.testset == arguments.testset]
    if selected and not of_testset and arguments.testset != TextArguments.testset:
        testsets = ", ".join(dict.fromkeys(text.testset for text in selected))
        raise EvalError(f"{folder}: has no --testset {arguments.testset}; its test sets are {testsets}.")
    selected = of_testset or selected
    if not texts:
        raise EvalError(f"{folder}: holds no submissions under WMT's names.")
    if not selected:
        tasks = ", ".join(dict.fromkeys(text.task for text in texts))
        raise EvalError(f"{folder}: has no submissions of --task {arguments.task}; its pairs are {tasks}.")
    if len(selected) > 1 and (files := [*(system.path for system in others), *arguments.references]):
        raise EvalError(f"{files[0]}: is of one task, and {folder} has {len(selected)}; name it with --task.")
    return [text for each in selected for text in _open_one(folder, each, others, arguments)]


def _submitted_first(translated: TranslatedText, others: Sequence[System]) -> TranslatedText:
    """Move the systems of a folder that is named first to the front, where the baseline is."""
    count = len(others)
    return replace(translated, outputs=translated.outputs[count:] + translated.outputs[:count])


def _open_one(
    folder: str, text: SubmittedText, others: Sequence[System], arguments: TextArguments
) -> list[TranslatedText]:
    named = replace(arguments, task=text.task)
    if not arguments.references:
        if not text.references:
            raise EvalError(
                f"{folder}: has no references of {text.testset} {text.task}; name them with --reference."
            )
        named = replace(named, references=text.references, reference_columns=())
    source = arguments.source or text.source
    systems = [*others, *(System(name=name, path=path) for name, path in text.systems.items())]
    check_names(systems)
    files = _text_files(systems, replace(named, source=source))
    return open_systems(systems, testset=text.testset, task=text.task, files=files)


def _text_files(systems: Sequence[System], arguments: TextArguments) -> TextFiles | None:
    """Return the files of references and sources; None if no option names any."""
    references, source = arguments.references, arguments.source
    if not references and arguments.reference_columns:
        references = (_only_table(systems, "--reference-column", "--reference"),)
    if not references:
        for option, value in {"--source": source, "--source-column": arguments.source_column}.items():
            if value is not None:
                raise EvalError(
                    f"{option} {value}: is of use only with references; name them with --reference."
                )
        return None
    if source is None and arguments.source_column is not None:
        source = references[0]
    if (name := _sacrebleu_name(arguments)) is not None:
        if len(references) > 1 or arguments.reference_columns:
            raise EvalError(f"--reference {PREFIX}{name}: has its own references, so no others can be named.")
        references, own_source = sacrebleu_files(name, arguments.task)
        source = source or own_source
    return TextFiles(
        task=arguments.task or "",
        references=references,
        source=source,
        reference_columns=arguments.reference_columns,
        source_column=arguments.source_column,
    )


def _sacrebleu_name(arguments: TextArguments) -> str | None:
    """Return the test set of sacreBLEU that the references name; None if they are files."""
    names = [str(path) for path in arguments.references if str(path).startswith(PREFIX)]
    return names[0].removeprefix(PREFIX) if names else None


def _only_table(systems: Sequence[System], option: str, file_option: str) -> Path:
    """Return the one file that all systems are columns of."""
    paths = {system.path for system in systems}
    if len(paths) != 1 or any(system.column is None for system in systems):
        raise EvalError(f"{option}: of which file? Name it with {file_option}.")
    return paths.pop()
