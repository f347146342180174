"""The command line `mnmt-eval`."""

from __future__ import annotations

import re
import sys
from typing import NoReturn

from cyclopts import App

from mnmt_data.cli.console import run_app
from mnmt_data.errors import UserError
from mnmt_eval.errors import EvalError

__all__ = ["app", "main"]

app = App(
    name="mnmt-eval",
    help="Translate with trained models, and score, compare and read translations.",
    help_format="plaintext",  # Markdown takes as long to import as all else that the page needs
)
COMMANDS = {
    "analyse:analyse": "Analyse scored runs: by resource, zero-shot, transfer, quality against cost.",
    "compare:compare": "Compare systems: every metric with its interval, tests of all pairs, and ranks.",
    "rerank:rerank": "Choose among candidate translations of each line, by minimum Bayes risk.",
    "score:score": "Score every finished run on its test sets, and append the metrics to its evals.jsonl.",
    "translate:translate": "Translate text, a sentence a line, with a trained model.",
}
"""The module and function of each command, imported when it runs, and the start of its docstring."""

for _path, _help in COMMANDS.items():
    app.command(f"mnmt_eval.cli.{_path}", help=_help, help_format="markdown")
app.register_install_completion_command()


def main() -> NoReturn:
    """Run the command line."""
    run_app(app, prog="mnmt-eval", phrase=_name_options)


def _name_options(error: UserError) -> str:
    """Return a message whose `field`s are named as the options that set them, such as `--n-best`."""
    message = str(error)
    _, apps, _ = app.parse_commands(sys.argv[1:])
    if not isinstance(error, EvalError) or len(apps) < 2:
        return message
    names = [argument.name for argument in apps[-1].assemble_argument_collection()]
    topic = message.partition(":")[0]

    def name_option(field: re.Match[str]) -> str:
        leaf = field[1].replace("_", "-")
        options = [name for name in names if re.split(r"^--|\.", name)[-1] == leaf]
        options.sort(key=lambda name: (not name.startswith(f"--{topic}."), name.count(".")))
        return f"`{options[0]}`" if options else field[0]

    return re.sub("`([a-z][a-z_]*)`", name_option, message)
