"""The command line `mnmt-data`."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line."""
    # Imported here, since the other packages' commands use `mnmt_data.cli.console` too.
    from mnmt_data.cli import fetch, inspect, prepare, schema, select  # noqa: F401 - each adds its commands
    from mnmt_data.cli.app import app
    from mnmt_data.cli.console import run_app

    run_app(app, prog="mnmt-data")
