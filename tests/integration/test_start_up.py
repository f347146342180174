"""What the command lines import before a command runs, and how they list and complete commands."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

CLIS = {name: import_module(f"mnmt_{name}.cli") for name in ("data", "model", "eval", "laws")}
COMMANDS = [(name, path) for name, cli in CLIS.items() for path in cli.COMMANDS]
SLOW = {"altair", "filelock", "numpy", "pandas", "pyarrow", "rich.markdown", "sacrebleu", "scipy"}
SLOW |= {"sentencepiece", "torch", "transformers", "xarray"}
TRACED = """
import sys
from mnmt_{}.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("flag", ["--help", "--version"])
@pytest.mark.parametrize("name", CLIS)
def test_it_imports_nothing_slow_and_no_other_package(name: str, flag: str) -> None:
    command = [sys.executable, "-c", TRACED.format(name), flag]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    others = {f"mnmt_{other}" for other in CLIS} - {f"mnmt_{name}", "mnmt_data"}
    assert not (SLOW | others) & set(done.stderr.split())


@pytest.mark.parametrize(("name", "path"), COMMANDS)
def test_the_list_shows_the_start_of_each_docstring(name: str, path: str) -> None:
    module, _, function = path.partition(":")
    command, app = getattr(import_module(f"mnmt_{name}.cli.{module}"), function), CLIS[name].app
    assert command.__doc__.startswith(CLIS[name].COMMANDS[path].removesuffix("."))
    assert app[app.name_transform(function)].default_command is command


@pytest.mark.parametrize("name", CLIS)
def test_shells_complete_the_commands(name: str) -> None:
    app = CLIS[name].app
    commands = [app.name_transform(path.partition(":")[2]) for path in CLIS[name].COMMANDS]
    script = app.generate_completion(shell="bash")
    assert all(command in script for command in commands)
