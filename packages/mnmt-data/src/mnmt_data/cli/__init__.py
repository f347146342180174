"""The command line `mnmt-data`."""

from __future__ import annotations

from typing import NoReturn

from mnmt_data.cli import fetch, inspect, prepare, replay, select  # noqa: F401 - each adds its commands
from mnmt_data.cli.app import app
from mnmt_data.console import run_app

__all__ = ["app", "main"]


def main() -> NoReturn:
    """Run the command line."""
    run_app(app, prog="mnmt-data")
