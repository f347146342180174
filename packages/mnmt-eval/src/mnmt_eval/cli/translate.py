"""`mnmt-eval translate`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO

import torch
from cyclopts import Parameter

from mnmt_eval.cli.options import Json, Names, TranslationOptions, app
from mnmt_eval.cli.progress import TranslateProgress
from mnmt_eval.errors import EvalError
from mnmt_eval.runs.translator import RunTranslator, find_devices, open_translator, searching
from mnmt_eval.translate import BATCH_TOKENS, WINDOW_LINES, Line
from mnmt_eval.translate.inputs import Transfer, find_transfers
from mnmt_eval.translate.lines import read_lines, read_tagged_lines
from mnmt_eval.translate.outputs import FileOutput, Output, StreamOutput
from mnmt_eval.translate.translation import Format
from mnmt_eval.translate.translator import SearchAll

Flag = Annotated[bool, Parameter(negative="")]


@dataclass(frozen=True, kw_only=True)
class WorkOptions:
    """How the work is done, which changes no translation."""

    batch_tokens: int = BATCH_TOKENS
    """Source tokens searched at a time, padding included."""

    window_lines: int = WINDOW_LINES
    """Lines read, and sorted by length, before the first is translated; 1 answers each at once."""

    jobs: int | None = None
    """Processes that search; each has one core, or one GPU. By default one for each GPU, or one in all."""

    device: str | None = None
    """Where to search, such as `cpu` or `cuda`; every GPU that is there, or the CPU, by default."""

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise EvalError(f"`jobs` must be at least 1, but is {self.jobs}.")


@app.command
def translate(
    *,
    run: Annotated[Path, Parameter(("--run", "--checkpoint"))],
    pair: Annotated[Names, Parameter(show_default=False)] = (),
    tagged: Flag = False,
    source: Annotated[Path | None, Parameter("--input")] = None,
    output: Path | None = None,
    scores: Flag = False,
    as_json: Json = False,
    search: Annotated[TranslationOptions, Parameter("*")] = TranslationOptions(),  # noqa: B008 - it is frozen
    work: Annotated[WorkOptions, Parameter("*")] = WorkOptions(),
) -> None:
    """Translate text, a sentence a line, with a trained run: stdin to stdout, or files.

    Args:
        run: Its folder, for the newest checkpoint; or a checkpoint of it, or an average of some.
        pair: The language pair, such as `en-de`; several with folders.
        tagged: Every line names its pair itself: `en-de<TAB>text`.
        source: A file; or a folder, of which every NAME.en and NAME.en-de.en is translated.
        output: A file, which an interrupted command takes up again; or a folder of such, if the input is one.
        scores: Write a table: number of the line, score, translation; `--n-best` writes one too.
        as_json: Write an object a line, with all that is known of the translation.
        search: How to search.
        work: How the work is done.
    """
    config, devices = search.config, find_devices(work.device)
    transfers = find_transfers(pair, tagged=tagged, source=source, output=output)
    jobs = len(devices) if work.jobs is None else work.jobs
    if jobs > 1:
        torch.set_num_threads(1)  # OpenMP's threads would not survive the fork
    opened = open_translator(
        run,
        config=config,
        max_source=search.max_source,
        batch_tokens=work.batch_tokens,
        window_lines=work.window_lines,
    )
    for name in pair:
        opened.target_of(name)
    form: Format = "json" if as_json else "table" if scores or config.n_best > 1 else "text"
    with (
        searching(opened.translator, jobs=jobs, devices=devices) as search_all,
        TranslateProgress() as progress,
    ):
        for transfer in transfers:
            _transfer(opened, transfer, form, search_all, progress)


def _transfer(
    opened: RunTranslator,
    transfer: Transfer,
    form: Format,
    search_all: SearchAll,
    progress: TranslateProgress,
) -> None:
    with _open_input(transfer) as stream, _open_output(opened, transfer, form, progress) as output:
        progress.begin(stream, transfer.name)
        lines = output.remaining(_read(opened, transfer, stream))
        ready = opened.translator.translate(lines, search_all=search_all, on_lines=progress.advance)
        for group in ready:
            output.write(group)
        for remark in output.remarks.told(max_source=opened.translator.max_source):
            progress.say(f"{transfer.name}: {remark}")


def _read(opened: RunTranslator, transfer: Transfer, stream: BinaryIO) -> Iterator[Line]:
    if transfer.pair is None:
        return read_tagged_lines(stream, name=transfer.name, target_of=opened.target_of)
    return read_lines(stream, name=transfer.name, target=opened.target_of(transfer.pair))


@contextmanager
def _open_input(transfer: Transfer) -> Iterator[BinaryIO]:
    if transfer.source is None:
        if sys.stdin is None:
            raise EvalError("stdin is closed; name a file with `--input`.")
        yield sys.stdin.buffer
    else:
        with transfer.source.open("rb") as stream:
            yield stream


@contextmanager
def _open_output(
    opened: RunTranslator, transfer: Transfer, form: Format, progress: TranslateProgress
) -> Iterator[Output]:
    if transfer.output is None:
        with _leaving_failed_stdout():
            yield StreamOutput(sys.stdout.buffer, form, name="stdout")
        return
    made_with = {"pair": transfer.pair or "tagged", **opened.made_with}
    with closing(FileOutput(transfer.output, form, made_with)) as output:
        progress.skip(output.lines)
        try:
            yield output
        except KeyboardInterrupt:
            progress.say(
                f"{transfer.output}: has {output.lines:,} lines; the same command goes on after them."
            )
            raise


@contextmanager
def _leaving_failed_stdout() -> Iterator[None]:
    """Where stdout cannot be written, Python would complain once more on closing it."""
    try:
        yield
    except OSError as error:
        if error.filename == "stdout":
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
