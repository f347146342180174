"""The package's exceptions: mistakes in files and data, each reported in one line."""

from __future__ import annotations


class DataError(Exception):
    """A file or its content is not what it must be.

    The message is one line, ``FILE[:LINE]: what is wrong; what would be right``.
    """


class StudyError(DataError):
    """A study file cannot be read: unknown key, wrong type, missing section."""
