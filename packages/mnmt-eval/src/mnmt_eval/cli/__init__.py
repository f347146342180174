"""The command line `mnmt-eval`."""

from __future__ import annotations

import sys
from typing import NoReturn

from cyclopts import App

import mnmt_eval
from mnmt_data.console import run_app

__all__ = ["app", "main"]

app = App(
    name="mnmt-eval",
    help="Translate with trained runs, and score, compare and read translations.",
    version=lambda: mnmt_eval.__version__,
    help_format="plaintext",  # Markdown takes as long to import as all else that the page needs
)
_COMMANDS = {
    "analyse": "Analyse scored runs: by resource, zero-shot translation, transfer, quality against cost.",
    "compare": "Compare systems: metrics with intervals, and significance against a baseline.",
    "report": "Write a page to read translations in, with sources and references, worst cases first.",
    "rerank": "Choose among candidate translations of each line, by minimum Bayes risk or by a score.",
    "score": "Score every finished run on its test sets, and append the metrics to its evals.jsonl.",
    "translate": "Translate text, a sentence a line, with a trained run: from stdin to stdout, or files.",
}
for _name, _help in _COMMANDS.items():
    app.command(f"mnmt_eval.cli.{_name}:{_name}", name=_name, help=_help)  # imported when it is run

_OLD_NAMES = {"--baselines": "--baseline", "--metrics": "--metric", "--output": "--out", "--pair": "--task"}
"""Old names of options, which still work."""


def main() -> NoReturn:
    """Run the command line."""
    sys.argv[1:] = [_current_name(argument) for argument in sys.argv[1:]]
    run_app(app, prog="mnmt-eval")


def _current_name(argument: str) -> str:
    name, equals, value = argument.partition("=")
    return _OLD_NAMES.get(name, name) + equals + value
