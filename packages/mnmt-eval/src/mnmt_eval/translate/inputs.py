"""Inputs of a translation command: which files are translated into which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mnmt_eval.errors import EvalError
from mnmt_eval.language import languages_of


@dataclass(frozen=True, kw_only=True)
class TranslationJob:
    """One input, its task, and the output for its translations."""

    task: str | None
    """The task of all lines; None if each line names its task."""
    source: Path | None
    """A file, or None for stdin."""
    out: Path | None
    """A file, or None for stdout."""

    @property
    def name(self) -> str:
        """The input's name in messages."""
        return "stdin" if self.source is None else str(self.source)


def plan_jobs(tasks: Sequence[str], *, source: Path | None, out: Path | None) -> list[TranslationJob]:
    """Return the inputs that options name, each with its output.

    Args:
        tasks: Tasks such as `en-de`; none if every line names its task.
        source: A file or folder, or None for stdin.
        out: A file, or a folder if `source` is one, or None for stdout.

    Raises:
        EvalError: If these contradict each other, a task is no language pair, a folder has no sources, or the
            folder of the one output is missing.
    """
    if source is not None and source.is_dir():
        if not tasks or out is None:
            raise EvalError(f"{source}: a folder takes `--task` and, for the translations, `--out FOLDER`.")
        return [
            TranslationJob(task=task, source=path, out=out / name)
            for task in dict.fromkeys(tasks)
            for name, path in sources_of(source, task).items()
        ]
    if len(tasks) > 1:
        raise EvalError(
            f"one text cannot be of several tasks ({', '.join(tasks)}): give folders as `--input` and "
            "`--out`, or lines that name their task, without `--task`."
        )
    if out is not None:
        _check_file(out)
    return [TranslationJob(task=tasks[0] if tasks else None, source=source, out=out)]


def _check_file(out: Path) -> None:
    """Check that an output can be a file in a folder that there is."""
    if out.is_dir():
        raise EvalError(f"{out}: is a folder; name a file, or a folder as `--input` too.")
    if not out.parent.is_dir():
        raise EvalError(f"{out.parent}: no such folder; make it, or name another `--out`.")


def sources_of(folder: Path, task: str) -> dict[str, Path]:
    """Return the sources of a task in a folder, by the names of their translations.

    Of en-de, `NAME.en` and `NAME.en-de.en` are sources, and the translation of either is `NAME.en-de.de`;
    `NAME.de-en.en` and `NAME.en-fr.en` belong to other tasks.

    Raises:
        EvalError: If `task` is no language pair, there is no source, or two have translations of one name.
    """
    src, tgt = languages_of(task)
    sources: dict[str, Path] = {}
    for path in sorted(folder.glob(f"*.{src}")):
        name, dot, tag = path.stem.rpartition(".")
        if dot and src in tag.split("-") and tag.count("-") == 1:
            if tag != task:
                continue
        else:
            name = path.stem
        translation = f"{name}.{task}.{tgt}"
        if translation in sources:
            raise EvalError(
                f"{path}: its translation would be {translation}, as that of {sources[translation].name} is; "
                "remove one of them."
            )
        sources[translation] = path
    if not sources:
        raise EvalError(f"{folder}: holds neither NAME.{src} nor NAME.{task}.{src} to translate.")
    return sources
