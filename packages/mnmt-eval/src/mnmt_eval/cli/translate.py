"""`mnmt-eval translate`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from mnmt_data.cli.console import Jobs
from mnmt_eval.cli.options import Json
from mnmt_eval.cli.progress import TranslateProgress, print_message
from mnmt_eval.cli.search_options import TranslationFlags
from mnmt_eval.errors import EvalError, require_hugging_face, require_runs
from mnmt_eval.translate.folders import is_model_folder
from mnmt_eval.translate.lines import source_lines, tagged_source_lines
from mnmt_eval.translate.outputs import Output, StreamOutput, open_file_output
from mnmt_eval.translate.translation import Format
from mnmt_eval.translate.window import WINDOW_LINES

if TYPE_CHECKING:
    from mnmt_eval.runs.run_translator import RunTranslator
    from mnmt_eval.translate.model_folder import FolderTranslator


@dataclass(frozen=True, kw_only=True)
class WorkFlags:
    """Options that change the speed, but no translation."""

    window_lines: int = WINDOW_LINES
    """Lines read, and sorted by length, before the first is translated; 1 answers each at once."""
    jobs: Jobs = None
    """Processes that search; each has one core, or one GPU. By default one per GPU, or one in all."""
    device: str | None = None
    """The device to search on, such as `cpu` or `cuda`; by default every GPU, or the CPU if there is none."""


def translate(
    *,
    model: Annotated[Path, Parameter(("--model", "--run"))],
    task: str | None = None,
    source_prefix: str = "",
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    as_json: Json = False,
    search: Annotated[TranslationFlags, Parameter("*")] = TranslationFlags(),  # noqa: B008 - it is frozen
    work: Annotated[WorkFlags, Parameter("*")] = WorkFlags(),
) -> None:
    """Translate text, a sentence a line, with a trained model: from stdin to stdout, or to a file.

    Args:
        model: A run's folder, for its newest checkpoint; a checkpoint, or an average of checkpoints; or a
            folder with a Hugging Face encoder-decoder, or its export for CTranslate2, and its tokenizer.
        task: The language pair, such as `en-de`. By default every line names its own: `en-de<TAB>text`.
        source_prefix: Text before every source, such as "translate English to German: ", for models of T5.
        out: A file, which an interrupted command resumes.
        as_json: Write a JSON object a line, with every candidate and its scores.
        search: Options of the search.
        work: Options that change the speed, but no translation.
    """
    (require_hugging_face if is_model_folder(model) else require_runs)("translate")
    import torch

    from mnmt_eval.translate.parallel import find_devices, search_in_parallel

    devices = find_devices(work.device)
    _check_files(out)
    num_processes = len(devices) if work.jobs is None else work.jobs
    if num_processes > 1:
        torch.set_num_threads(1)  # OpenMP's threads would not survive the fork
    translator = _open(
        model,
        source_prefix,
        will_fork=num_processes > 1,
        config=search.config,
        engine=search.engine_config,
        window_lines=work.window_lines,
        device=devices[0],
    )
    target = None if task is None else translator.target_of(task)
    form: Format = "json" if as_json else "table" if search.config.n_best > 1 else "text"
    made_with = {} if out is None else {"pair": task or "tagged", **translator.made_with}
    with (
        search_in_parallel(translator.translator, jobs=num_processes, devices=devices) as search_batches,
        TranslateProgress() as progress,
        _open_output(out, form, made_with, progress) as output,
    ):
        progress.start_input(sys.stdin.buffer)
        lines = (
            tagged_source_lines(sys.stdin.buffer, name="stdin", target_of=translator.target_of)
            if target is None
            else source_lines(sys.stdin.buffer, name="stdin", target=target, task=task or "")
        )
        for group in translator.translator.translate(
            output.skip_written(lines), search_batches=search_batches, on_lines=progress.advance
        ):
            output.write(group)
        for message in output.remarks.messages(max_source=translator.translator.max_source):
            progress.print(f"stdin: {message}")


def _open(
    model: Path, source_prefix: str, *, will_fork: bool, **options: Any
) -> FolderTranslator | RunTranslator:
    if is_model_folder(model):
        from mnmt_eval.translate.model_folder import open_model_folder

        return open_model_folder(model, prefix=source_prefix, **options)
    if source_prefix:
        raise EvalError("--source-prefix: is of use only with a Hugging Face model.")
    from mnmt_eval.runs.run_translator import open_translator

    return open_translator(model, will_fork=will_fork, on_export=print_message, **options)


def _check_files(out: Path | None) -> None:
    """Check that there is an input, and that the output can be a file in a folder that there is."""
    if sys.stdin is None:
        raise EvalError("stdin is closed; redirect it from a file.")
    if out is not None and out.is_dir():
        raise EvalError(f"{out}: is a folder; name a file.")
    if out is not None and not out.parent.is_dir():
        raise EvalError(f"{out.parent}: no such folder; make it, or name another `--out`.")


@contextmanager
def _open_output(
    out: Path | None, form: Format, made_with: Mapping[str, Any], progress: TranslateProgress
) -> Iterator[Output]:
    if out is None:
        with _silence_closing_stdout():
            yield StreamOutput(sys.stdout.buffer, form, name="stdout")
        return
    with open_file_output(out, form, made_with) as output:
        progress.skip(output.lines)
        try:
            yield output
        except KeyboardInterrupt:
            progress.print(f"{out}: has {output.lines:,} lines; the same command continues after them.")
            raise


@contextmanager
def _silence_closing_stdout() -> Iterator[None]:
    """Keep Python from complaining once more when it closes an stdout that cannot be written."""
    try:
        yield
    except OSError as error:
        if error.filename == "stdout":
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
