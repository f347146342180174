"""The `mnmt-laws` command line: thin layers over the package's functions."""

from __future__ import annotations

from cyclopts import App

from mnmt_laws.cli.console import run_app
from mnmt_laws.errors import ArgumentError, TableError

app = App(
    name="mnmt-laws",
    help="Scaling laws of multilingual translation, fitted to tables of losses.",
    help_format="plaintext",  # Markdown takes as long to import as all else that the page needs
    suppress_keyboard_interrupt=False,  # `run_app` says so in one line
)
COMMANDS = {
    "collect:collect": "Write the run table of a folder of run records, or of a table in another form.",
    "analysis:fit": "Fit a law to every task and print its parameters.",
    "analysis:compare": "Find the law that the table prefers, and the parameter that the mixture moves.",
    "frontier:frontier": "Predict the loss of every task over the mixtures, at one size and training length.",
    "recommend:recommend": "Recommend the weights of the tasks, and say what is at stake.",
    "design:design": "Propose the runs that remove most of the advice's expected regret.",
    "analysis:report": "Write the report of a study.",
    "laws:laws": "List the laws: what they predict from, their source and formula.",
}
"""The module and function of each command, imported when it runs, and the start of its docstring."""

for _path, _help in COMMANDS.items():
    app.command(f"mnmt_laws.cli.{_path}", help=_help, help_format="markdown")
app.register_install_completion_command()


def main() -> None:
    """Run the command line."""
    run_app(app, prog="mnmt-laws", errors=(TableError, ArgumentError))
