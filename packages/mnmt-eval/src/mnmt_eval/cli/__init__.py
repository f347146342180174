"""The command line `mnmt-eval`."""

from __future__ import annotations

from typing import NoReturn

from mnmt_data.console import run_app
from mnmt_data.errors import DataError
from mnmt_eval.cli import analyse, compare, report, score, translate  # noqa: F401 - each adds its command
from mnmt_eval.cli.options import app
from mnmt_eval.errors import EvalError
from mnmt_model import RunError

__all__ = ["app", "main"]


def main() -> NoReturn:
    """Run the command line."""
    run_app(app, prog="mnmt-eval", errors=(EvalError, RunError, DataError))
