"""The exceptions that a user's table, run records or arguments can cause."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class TableError(Exception):
    """A run table or run record that cannot be analysed.

    The message is one line: the file, the row as a spreadsheet numbers it, the fault and the remedy.
    """


class ArgumentError(ValueError):
    """An argument that a function cannot take: one sentence with its name, the fault and the remedy.

    The command line prints it as one line; any other `ValueError` is a bug and keeps its traceback.
    """


def did_you_mean(name: object, choices: Iterable[str]) -> str:
    """Return ` (did you mean X?)` where a choice is close, else nothing."""
    close = get_close_matches(str(name), list(choices), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""
