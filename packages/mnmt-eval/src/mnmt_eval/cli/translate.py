"""`mnmt-eval translate`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from cyclopts import Parameter

from mnmt_eval.cli.options import Json, Names
from mnmt_eval.cli.progress import TranslateProgress, print_message
from mnmt_eval.cli.search_options import TranslationFlags
from mnmt_eval.errors import EvalError, require_runs
from mnmt_eval.translate.inputs import TranslationJob, plan_jobs
from mnmt_eval.translate.lines import SourceLine, source_lines, tagged_source_lines
from mnmt_eval.translate.outputs import Output, StreamOutput, open_file_output
from mnmt_eval.translate.translation import Format
from mnmt_eval.translate.window import WINDOW_LINES

if TYPE_CHECKING:
    from mnmt_eval.runs import RunTranslator
    from mnmt_eval.translate.translator import SearchBatches


@dataclass(frozen=True, kw_only=True)
class WorkFlags:
    """Options that change the speed, but no translation."""

    window_lines: int = WINDOW_LINES
    """Lines read, and sorted by length, before the first is translated; 1 answers each at once."""
    jobs: Annotated[int | None, Parameter(alias="-j")] = None
    """Processes that search; each has one core, or one GPU. By default one per GPU, or one in all."""
    device: str | None = None
    """The device to search on, such as `cpu` or `cuda`; by default every GPU, or the CPU if there is none."""

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise EvalError(f"`jobs` must be at least 1, but is {self.jobs}.")


def translate(
    *,
    run: Annotated[Path, Parameter(("--run", "--checkpoint"))],
    task: Annotated[Names, Parameter(show_default=False)] = (),
    source: Annotated[Path | None, Parameter("--input")] = None,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    as_json: Json = False,
    search: Annotated[TranslationFlags, Parameter("*")] = TranslationFlags(),  # noqa: B008 - it is frozen
    work: Annotated[WorkFlags, Parameter("*")] = WorkFlags(),
) -> None:
    """Translate text, a sentence a line, with a trained run: from stdin to stdout, or files.

    Args:
        run: The run's folder, for its newest checkpoint; or a checkpoint, or an average of checkpoints.
        task: The language pair, such as `en-de`; several with folders. By default every line names its own:
            `en-de<TAB>text`.
        source: A file; or a folder, of which every NAME.en and NAME.en-de.en is translated.
        out: A file, which an interrupted command resumes; or a folder of files, if the input is one.
        as_json: Write a JSON object a line, with every candidate and its scores.
        search: Options of the search.
        work: Options that change the speed, but no translation.
    """
    require_runs("translate")
    import torch

    from mnmt_eval.runs.run_translator import find_devices, open_translator, search_in_parallel

    config, engine, devices = search.config, search.engine_config, find_devices(work.device)
    engine.check(config)
    jobs = plan_jobs(task, source=source, out=out)
    num_processes = len(devices) if work.jobs is None else work.jobs
    if num_processes > 1:
        torch.set_num_threads(1)  # OpenMP's threads would not survive the fork
    translator = open_translator(
        run,
        config=config,
        engine=engine,
        window_lines=work.window_lines,
        device=devices[0],
        will_fork=num_processes > 1,
        on_export=print_message,
    )
    for name in task:
        translator.target_of(name)
    form: Format = "json" if as_json else "table" if config.n_best > 1 else "text"
    with (
        search_in_parallel(translator.translator, jobs=num_processes, devices=devices) as search_batches,
        TranslateProgress() as progress,
    ):
        for job in jobs:
            _translate(translator, job, form, search_batches, progress)


def _translate(
    translator: RunTranslator,
    job: TranslationJob,
    form: Format,
    search_batches: SearchBatches,
    progress: TranslateProgress,
) -> None:
    made_with = {"pair": job.task or "tagged", **translator.made_with}
    with _open_input(job) as stream, _open_output(job, form, made_with, progress) as output:
        progress.start_input(stream, job.name)
        lines = output.skip_written(_read(translator, job, stream))
        for group in translator.translator.translate(
            lines, search_batches=search_batches, on_lines=progress.advance
        ):
            output.write(group)
        for message in output.remarks.messages(max_source=translator.translator.max_source):
            progress.print(f"{job.name}: {message}")


def _read(translator: RunTranslator, job: TranslationJob, stream: BinaryIO) -> Iterator[SourceLine]:
    if job.task is None:
        return tagged_source_lines(stream, name=job.name, target_of=translator.target_of)
    target = translator.target_of(job.task)
    return source_lines(stream, name=job.name, target=target, task=job.task)


@contextmanager
def _open_input(job: TranslationJob) -> Iterator[BinaryIO]:
    if job.source is None:
        if sys.stdin is None:
            raise EvalError("stdin is closed; name a file with `--input`.")
        yield sys.stdin.buffer
    else:
        with job.source.open("rb") as stream:
            yield stream


@contextmanager
def _open_output(
    job: TranslationJob, form: Format, made_with: Mapping[str, Any], progress: TranslateProgress
) -> Iterator[Output]:
    if job.out is None:
        with _silence_closing_stdout():
            yield StreamOutput(sys.stdout.buffer, form, name="stdout")
        return
    with open_file_output(job.out, form, made_with) as output:
        progress.skip(output.lines)
        try:
            yield output
        except KeyboardInterrupt:
            progress.print(f"{job.out}: has {output.lines:,} lines; the same command goes on after them.")
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
