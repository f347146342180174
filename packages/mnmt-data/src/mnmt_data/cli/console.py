"""Run a command line: exit statuses, and one line for a user's mistake instead of a traceback."""

from __future__ import annotations

import io
import os
import platform
import sys
import time
from collections.abc import Callable
from inspect import BoundArguments, signature
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, validators

from mnmt_data.cli.signals import end_on_signals
from mnmt_data.errors import UserError

MOST_JOBS = 10_000
Jobs = Annotated[int | None, Parameter(("--jobs", "-j"), validator=validators.Number(gte=1, lte=MOST_JOBS))]
"""The option of all commands that work in several processes."""

USER_ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


def run_app(app: App, *, prog: str, phrase: Callable[[UserError], str] = str) -> NoReturn:
    """Run a console script on `sys.argv`, and exit.

    The status is the number that the command returns, or 0. A mistake in the arguments, a `UserError` and an
    `OSError` (a missing file) print ``prog: message`` as one line on stderr and exit with 2; so does Windows,
    where the packages do not work. A signal ends the command, with 128 more than its number: 130 for Ctrl-C,
    143 for SIGTERM. Any other exception is a bug and keeps its traceback.

    Args:
        app: The commands; each prints its own output and returns None or an exit status.
        prog: Name of the script, which opens every message.
        phrase: A function that returns the message of a user's mistake.
    """
    if platform.system() == "Windows":
        _complain(prog, "Windows is not supported; run it in WSL, the Windows Subsystem for Linux.")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does: no locale loses a result
    app.suppress_keyboard_interrupt = False
    try:
        with end_on_signals(prog):
            command, arguments = _parse(app, sys.argv[1:])
            status = command(*arguments.args, **arguments.kwargs)
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; Python would complain once more on closing stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BROKEN_PIPE)
    except UserError as error:
        _complain(prog, phrase(error))
    except (CycloptsError, OSError) as error:
        _complain(prog, _message(error))
    except KeyboardInterrupt as error:
        _complain(prog, str(error) or "interrupted", getattr(error, "exit_status", INTERRUPTED))
    sys.exit(status if isinstance(status, int) else 0)


def _parse(app: App, tokens: list[str]) -> tuple[Callable[..., object], BoundArguments]:
    """Return the command and its arguments.

    Raises:
        UserError: If a dataclass of options refuses an argument.
    """
    try:
        if page := _help_page(app, tokens):
            return page
        command, arguments, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
    except UserError:
        raise
    except ValueError as error:
        raise UserError(str(error)) from error
    return command, arguments


def _help_page(app: App, tokens: list[str]) -> tuple[Callable[..., object], BoundArguments] | None:
    """Return the call that prints a help page, if requested; parsing would first read the options."""
    if "--" in tokens or not set(app.help_flags).intersection(tokens):
        return None
    words = [token for token in tokens if token not in {*app.help_flags, *app.version_flags}]
    _, apps, others = app.parse_commands(words)
    if apps[-1].default_command:
        apps[-1].help = None  # the docstring, in place of its first line, which the list of commands shows
    elif others:
        return None  # of a command that there is not
    return app.help_print, signature(app.help_print).bind(words)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MissingArgumentError) and error.keyword is None and error.argument is not None:
        return f"{error.argument.name} is missing; see --help."
    return str(error)


def _complain(prog: str, message: str, status: int = USER_ERROR) -> NoReturn:
    """Print what went wrong in one line, and exit."""
    line = f"{prog}: {' '.join(message.split())}"
    # Of the processes of torchrun, only the first prints.
    if os.environ.get("RANK", "0") == "0":
        print(line, file=sys.stderr)
    _tell_torchrun(line, status)
    sys.exit(status)


def _tell_torchrun(line: str, status: int) -> None:
    """Write the message to torchrun's error file, so that its report of the failure shows it."""
    if path := os.environ.get("TORCHELASTIC_ERROR_FILE"):
        import json

        extra = {"py_callstack": line, "timestamp": str(int(time.time()))}
        reason = {"message": {"message": line, "errorCode": status, "extraInfo": extra}}
        Path(path).write_text(json.dumps(reason), encoding="utf-8")
