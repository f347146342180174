"""Texts and systems as command lines name them: files, runs, and sacreBLEU's test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mnmt_eval.compare.sacrebleu_testsets import PREFIX, sacrebleu_files
from mnmt_eval.compare.systems import TranslatedText, name_systems, open_systems
from mnmt_eval.errors import EvalError
from mnmt_eval.runs.texts import TextFiles


@dataclass(frozen=True, kw_only=True)
class TextArguments:
    """The text that systems translated, as a command line names it; everything may be left out."""

    references: tuple[Path, ...] = ()
    """Files with references, or `sacrebleu:NAME`, a test set that sacreBLEU has fetched."""
    source: Path | None = None
    task: str | None = None
    testset: str = "test"


def open_texts(systems: Sequence[str], arguments: TextArguments) -> list[TranslatedText]:
    """Read the texts that a command line names, with the systems' translations of each.

    Args:
        systems: Files, folders of files, runs, or folders of runs; `NAME=FILE`.
        arguments: The text.

    Raises:
        EvalError: If something is missing, or files do not belong together.
        DataError: If the data of runs cannot be read.
        OSError: If a file is missing.
    """
    named, testset = name_systems(systems), arguments.testset
    files = _text_files(arguments)
    if (name := _sacrebleu_name(arguments)) is not None and not any(system.is_run for system in named):
        testset = name
    return open_systems(named, testset=testset, task=arguments.task, files=files)


def _text_files(arguments: TextArguments) -> TextFiles | None:
    """Return the files of references and sources; None if no option names any."""
    references, source = arguments.references, arguments.source
    if not references:
        if source is not None:
            raise EvalError(f"--source {source}: is of use only with references; name them with --reference.")
        return None
    if (name := _sacrebleu_name(arguments)) is not None:
        if len(references) > 1:
            raise EvalError(f"--reference {PREFIX}{name}: has its own references, so no others can be named.")
        references, own_source = sacrebleu_files(name, arguments.task)
        source = source or own_source
    return TextFiles(task=arguments.task or "", references=references, source=source)


def _sacrebleu_name(arguments: TextArguments) -> str | None:
    """Return the test set of sacreBLEU that the references name; None if they are files."""
    names = [str(path) for path in arguments.references if str(path).startswith(PREFIX)]
    return names[0].removeprefix(PREFIX) if names else None
