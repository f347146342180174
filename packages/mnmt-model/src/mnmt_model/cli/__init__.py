"""The command line `mnmt-model`."""

from __future__ import annotations

from typing import NoReturn

from cyclopts import App

from mnmt_data.cli.console import run_app

app = App(
    name="mnmt-model",
    help="Train Transformers for multilingual translation over sizes and mixtures.",
    help_format="plaintext",
)
COMMANDS = {
    "plan:plan": "Print the cost of training in advance: parameters, FLOPs, memory and time.",
    "tune:tune": "Find the peak learning rate of each size, and write it into the study.",
    "train:train": "Train one run of a study, or continue it from its newest checkpoint.",
    "train:sweep": "Train every run of a study, several at a time.",
    "status:status": "Print the states of a study's runs on all machines; on a terminal, every two seconds.",
    "run:average": "Average the weights of checkpoints of a run.",
    "run:log_probs": "Write the log-probability of every training pair under a run's newest model.",
    "run:export": "Write a run's model for transformers and CTranslate2.",
}
"""The module and function of each command, imported when it runs, and the start of its docstring."""

for _path, _help in COMMANDS.items():
    app.command(f"mnmt_model.cli.{_path}", help=_help, help_format="markdown")
app.register_install_completion_command()


def main() -> NoReturn:
    """Run the command line."""
    run_app(app, prog="mnmt-model")
