"""The output of commands, and their exit status."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from cyclopts import App, CycloptsError

if TYPE_CHECKING:
    import pandas as pd

_NUMBER = re.compile(r"(?<![\w-])-?\d[\d.,]*(?:e[+-]?\d+)?")
_MOST_NAMED = 8

_warnings: list[str] = []
_paths: list[str] = []


def run_app(app: App, *, prog: str, errors: tuple[type[Exception], ...]) -> NoReturn:
    """Run `app` on the command line's arguments and exit.

    The exit status is 0 on success, 2 after a mistake in the arguments, one of `errors` or a file that
    cannot be read or written, 130 after Ctrl-C, 143 after SIGTERM. A reader that closes the pipe early
    (`| head`) is no mistake. Anything else is a bug and keeps its traceback. Warnings come after the answer,
    then the paths of written files.
    """
    _warnings.clear()
    _paths.clear()
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        _, (_, *commands), _ = app.parse_commands([word for word in sys.argv[1:] if word[:1] != "-"])
        for command in commands:
            command.help = None  # the docstring, in place of its first line, which the list of commands shows
        with counted_seconds():
            app(sys.argv[1:], exit_on_error=False, print_error=False, result_action="return_value")
        _print_end()
    except KeyboardInterrupt as error:
        _leave(prog, "interrupted", status=128 + (error.args[0] if error.args else signal.SIGINT))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the flush at exit fails again
    except OSError as error:
        _leave(prog, f"{error.filename}: {error.strerror}" if error.filename else str(error), status=2)
    except CycloptsError as error:
        _leave(prog, str(error), status=2)
    except errors as error:
        assumed = [*_warnings, *getattr(error, "__notes__", ())]
        _leave(prog, str(error), status=2, warnings=assumed)
    finally:
        signal.signal(signal.SIGTERM, before)
    sys.exit(0)


@contextmanager
def _repeated(tick: Callable[[], None], every: float) -> Iterator[None]:
    """Call a function every few seconds while the inside runs."""
    over = Event()

    def run() -> None:
        while not over.wait(every):
            tick()

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def counted_seconds(*, every: float = 1.0) -> Iterator[None]:
    """Count the seconds of what is inside on the terminal's last line; anything printed overwrites them.

    Args:
        every: Seconds between counts.
    """
    if not sys.stderr.isatty():
        yield
        return
    start = time.monotonic()

    def count() -> None:
        print(f"… {time.monotonic() - start:.0f} s", end="\r", file=sys.stderr, flush=True)

    try:
        with _repeated(count, every):
            yield
    finally:
        print(" " * 12, end="\r", file=sys.stderr, flush=True)


class _Stages(logging.Handler):
    """The stage of a long command, and what the package says that it does in it."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.start, self.parts = time.monotonic(), [""]

    def begin(self, stage: str) -> None:
        """Print a stage."""
        self.parts = [stage]
        self.print()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what is done, and of the solver how far it is."""
        level = 2 if record.name.startswith("mnmt_laws.solver") else 1
        self.parts = [*self.parts[:level], record.getMessage()]

    def print(self) -> None:
        """Print a line of what is done now."""
        seconds = time.monotonic() - self.start
        print(f"after {seconds:.1f} s: {': '.join(self.parts)}", file=sys.stderr, flush=True)


@contextmanager
def print_stages(*, every: float = 4.0) -> Iterator[Callable[[str], None]]:
    """Yield a function that prints a stage; between stages a line says every few seconds what is done.

    Args:
        every: Seconds between lines.
    """
    stages, log = _Stages(), logging.getLogger("mnmt_laws")
    level, propagate = log.level, log.propagate
    log.addHandler(stages)
    log.setLevel(min(level or logging.INFO, logging.INFO))
    log.propagate = False  # or handlers of the root print every search
    try:
        with _repeated(stages.print, every):
            yield stages.begin
    finally:
        log.setLevel(level)
        log.propagate = propagate
        log.removeHandler(stages)


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:
    """Raise what Ctrl-C raises, so that no unfinished file stays."""
    raise KeyboardInterrupt(signum)


def _leave(prog: str, message: str, *, status: int, warnings: Iterable[str] = ()) -> NoReturn:
    for line in group_warnings(warnings):
        print(f"warning: {line}", file=sys.stderr)
    print(f"{prog}: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)


def warn(warnings: Iterable[str]) -> None:
    """Print each warning to stderr when the command ends; tasks with the same warning share a line."""
    _warnings.extend(warnings)


def wrote(path: object) -> None:
    """Print the path of a written file when the command ends, after the warnings."""
    _paths.append(str(path))


def _print_end() -> None:
    sys.stdout.flush()
    for line in group_warnings(_warnings):
        print(f"warning: {line}", file=sys.stderr)
    sys.stderr.flush()
    for path in _paths:
        print(path)


def group_warnings(warnings: Iterable[str]) -> list[str]:
    """Return each warning once, and as one line if only the task and numbers differ.

    `en-de: no run at weight 1.` and the same for `en-zh` become `en-de, en-zh: no run at weight 1.`
    """
    groups: dict[str, list[str]] = {}
    for line in dict.fromkeys(warnings):
        task, text = _split(line)
        groups.setdefault(_NUMBER.sub("#", text) if task else text, []).append(line)
    return [_joined(lines) for lines in groups.values()]


def _joined(lines: list[str]) -> str:
    tasks, texts = zip(*(_split(line) for line in lines), strict=True)
    if len(lines) == 1:
        return lines[0]
    if len(set(texts)) == 1:
        return f"{_listed(tasks)}: {texts[0]}"
    return f"{lines[0]} Likewise, with other numbers: {_listed(tasks[1:])}."


def _split(line: str) -> tuple[str, str]:
    """Return the task (and perhaps its weight) that a warning begins with, and the rest."""
    task, colon, text = line.partition(": ")
    return (task, text) if colon else ("", line)


def _listed(tasks: Sequence[str]) -> str:
    names = list(dict.fromkeys(tasks))
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document and nothing else; NaN and infinities, which JSON does not know, become null."""
    _warnings.clear()  # they are in the document
    _paths.clear()
    print(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value in the types of JSON."""
    import numpy as np
    import pandas as pd

    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, pd.DataFrame):
        return [plain(row) for row in value.to_dict("records")]
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_frame(frame: pd.DataFrame, formats: Mapping[str, str]) -> None:
    """Print a table to read; unknown numbers are dashes."""
    table = frame.copy()
    for column, pattern in formats.items():
        table[column] = [_cell(value, pattern) for value in frame[column]]
    print(table.to_string(index=False))


def _cell(value: float, pattern: str) -> str:
    return "–" if math.isnan(value) else pattern.format(value)
