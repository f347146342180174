"""How a command prints and how it ends."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import numpy as np
import pandas as pd
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


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document and nothing else; NaN and infinities, which JSON does not know, become null."""
    print(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value in the types of JSON."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, pd.DataFrame):
        return [plain(row) for row in value.to_dict("records")]
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def warn(warnings: Iterable[str]) -> None:
    """Print a line for each warning to stderr."""
    for line in dict.fromkeys(warnings):
        print(f"warning: {line}", file=sys.stderr)


def print_frame(frame: pd.DataFrame, formats: Mapping[str, str]) -> None:
    """Print a table to read; unknown numbers are dashes."""
    table = frame.copy()
    for column, pattern in formats.items():
        table[column] = [_cell(value, pattern) for value in frame[column]]
    print(table.to_string(index=False))


def _cell(value: float, pattern: str) -> str:
    return "–" if math.isnan(value) else pattern.format(value)
