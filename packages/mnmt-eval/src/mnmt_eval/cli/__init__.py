"""The command line `mnmt-eval`."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import NoReturn

from cyclopts import App

from mnmt_data import DataError
from mnmt_data.console import run_app
from mnmt_eval.errors import EvalError
from mnmt_model import RunError

__all__ = ["app", "main"]

app = App(
    name="mnmt-eval",
    help="Translate with trained runs, and score, compare and read translations.",
    version=version("mnmt-eval"),
)
_COMMANDS = {
    "analyse": "Analyse scored runs: by resource, zero-shot translation, transfer, quality against cost.",
    "compare": "Compare systems: metrics with intervals, and significance against a baseline.",
    "report": "Write a page to read translations in, with sources and references, worst cases first.",
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
    run_app(app, prog="mnmt-eval", errors=(EvalError, RunError, DataError))


def _current_name(argument: str) -> str:
    name, equals, value = argument.partition("=")
    return _OLD_NAMES.get(name, name) + equals + value
