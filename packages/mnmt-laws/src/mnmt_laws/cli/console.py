"""Run a cyclopts app so that a user's mistake costs one line on stderr and exit status 2."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from cyclopts import App, CycloptsError


def run_app(app: App, *, prog: str, errors: tuple[type[Exception], ...]) -> NoReturn:
    """Run `app` on the command line's arguments and exit.

    The exit status is 0 on success, 2 after a mistake in the arguments, one of `errors` or a file that
    cannot be read or written, 130 after Ctrl-C. A reader that closes the pipe early (`| head`) is no mistake.
    """
    try:
        app(sys.argv[1:], exit_on_error=False, print_error=False, result_action="return_value")
    except KeyboardInterrupt:
        _leave(prog, "interrupted", status=130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the flush at exit fails again
    except OSError as error:
        _leave(prog, f"{error.filename}: {error.strerror}" if error.filename else str(error), status=2)
    except CycloptsError as error:
        _leave(prog, str(error), status=2)
    except errors as error:
        _leave(prog, str(error), status=2)
    sys.exit(0)


def _leave(prog: str, message: str, *, status: int) -> NoReturn:
    print(f"{prog}: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)
