"""What is missing when the extra `export` is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mnmt_model.errors import RunError


@contextmanager
def export_extra() -> Iterator[None]:
    """Within it, modules of the extra `export` are imported.

    Raises:
        RunError: If one is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise RunError(f"exporting needs {error.name}: install mnmt-model[export]") from None
