"""The command line `mnmt-data`."""

from __future__ import annotations

from typing import NoReturn

from cyclopts import App

from mnmt_data.cli.console import run_app

__all__ = ["main"]

app = App(
    name="mnmt-data",
    help="Corpora to clean splits, a shared vocabulary and token shards.",
    help_format="plaintext",  # Markdown takes as long to import as all else that the page needs
)
COMMANDS = {
    "inspect:inspect": "Show counts, dropped pairs and samples of prepared data.",
    "new:new": "Write a study of your text that runs as it is, for a time on this machine.",
    "prepare:prepare": "Prepare a study's data, unless they are up to date.",
    "schema:schema": "Print the JSON schema of study files, by which editors complete and check them.",
    "select:select": "Order a task's training pairs, best first.",
}
"""The module and function of each command, imported when it runs, and the start of its docstring."""

for _path, _help in COMMANDS.items():
    app.command(f"mnmt_data.cli.{_path}", help=_help, help_format="markdown")
app.command(
    "mnmt_data.cli.fetch:fetch", help="Fetch parallel text that Debian distributes, translated from English."
)
app.register_install_completion_command()


def main() -> NoReturn:
    """Run the command line."""
    run_app(app, prog="mnmt-data")
