"""The `mnmt-laws` command line: thin layers over the package's functions."""

from __future__ import annotations

from importlib.metadata import version

from cyclopts import App

from mnmt_laws.cli.analysis import compare, fit, report
from mnmt_laws.cli.collect import collect
from mnmt_laws.cli.console import run_app
from mnmt_laws.cli.design import design
from mnmt_laws.cli.frontier import frontier
from mnmt_laws.cli.laws import laws
from mnmt_laws.cli.recommend import recommend
from mnmt_laws.errors import ArgumentError, TableError

app = App(
    name="mnmt-laws",
    help="Scaling laws of multilingual translation, fitted to tables of losses.",
    version=version("mnmt-laws"),
    suppress_keyboard_interrupt=False,  # `run_app` says so in one line
)
for command in (collect, fit, compare, frontier, recommend, design, report, laws):
    app.command(command)


def main() -> None:
    """Run the command line."""
    run_app(app, prog="mnmt-laws", errors=(TableError, ArgumentError))
