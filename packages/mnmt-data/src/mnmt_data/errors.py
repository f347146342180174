"""The package's exceptions: mistakes in files and data, each reported in one line."""

from __future__ import annotations

from pathlib import Path


class UserError(Exception):
    """A user's mistake, which commands print as one line, without a traceback."""


class DataError(UserError):
    """A file or its content is not what it must be.

    The message is one line, ``FILE[:LINE]: what is wrong; what would be right``.
    """


class StudyError(DataError):
    """A study file cannot be read: unknown key, wrong type, missing section."""


def missing_extra(extra: str) -> str:
    """Return the end of a message about a missing optional library."""
    return f"needs the extra `{extra}`: pip install './packages/mnmt-data[{extra}]'"


MOST_NAMES = 6
"""Most files of a folder to list in a message about a missing one."""


def folder_holds(path: Path) -> str:
    """Return the end of a message about a missing file: the files in its folder, similar names first.

    Args:
        path: The missing file.
    """
    from difflib import get_close_matches

    if not path.parent.is_dir():
        if ":/" in str(path):
            return "no file at this URL is named for it"
        return f"there is no folder {path.parent}"
    names = sorted(entry.name for entry in path.parent.iterdir() if not entry.name.startswith("."))
    if not names:
        return "its folder is empty"
    listed = get_close_matches(path.name, names, n=MOST_NAMES) or names[:MOST_NAMES]
    rest = f" and {len(names) - len(listed)} more" if len(names) > len(listed) else ""
    return f"its folder holds {', '.join(listed)}{rest}"


def one_line(error: BaseException) -> str:
    """Return the first line of a library's message."""
    text = getattr(error, "strerror", None) or str(error)
    return text.strip().partition("\n")[0].rstrip(".") or type(error).__name__
