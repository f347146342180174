"""The command line `mnmt-model`."""

from __future__ import annotations

from typing import NoReturn

from cyclopts import App

from mnmt_data.cli.console import run_app
from mnmt_model.cli.plan import plan
from mnmt_model.cli.run import average, export, import_run, log_probs
from mnmt_model.cli.status import status
from mnmt_model.cli.train import sweep, train
from mnmt_model.cli.tune import tune

app = App(name="mnmt-model", help="Train Transformers for multilingual translation over sizes and mixtures.")
for command in (plan, tune, train, sweep, status, average, log_probs, export):
    app.command(command)
app.command(import_run, name="import")


def main() -> NoReturn:
    """Run the command line."""
    run_app(app, prog="mnmt-model")
