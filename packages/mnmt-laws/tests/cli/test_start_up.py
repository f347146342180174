"""What the command line imports before a command runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mnmt_laws.cli import COMMANDS, app

SLOW = {"altair", "numpy", "pandas", "pyarrow", "sacrebleu", "scipy", "torch", "transformers", "xarray"}
TRACED = """
import sys
from mnmt_laws.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_it_imports_nothing_slow(flag: str) -> None:
    command = [sys.executable, "-c", TRACED, flag]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not SLOW & set(done.stderr.split())


@pytest.mark.parametrize("path", COMMANDS)
def test_the_list_shows_the_start_of_each_docstring(path: str) -> None:
    module, _, function = path.partition(":")
    command = getattr(__import__(f"mnmt_laws.cli.{module}", fromlist=[function]), function)
    assert command.__doc__.startswith(COMMANDS[path].removesuffix("."))
    assert app[app.name_transform(function)].default_command is command


def test_shells_complete_the_commands() -> None:
    names = [app.name_transform(path.partition(":")[2]) for path in COMMANDS]
    script = app.generate_completion(shell="bash")
    assert all(name in script for name in names)
