"""What the command line imports before a command runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mnmt_model.cli import COMMANDS, app

SLOW = {"altair", "numpy", "pandas", "pyarrow", "sacrebleu", "scipy", "torch", "transformers", "xarray"}
TRACED = """
import sys
from mnmt_model.cli import main
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


def test_a_dense_model_needs_neither_dtensors_nor_the_compiler() -> None:
    """FSDP2 and divided experts need the first; torch's optimisers import both, when one is made."""
    program = """
import sys
from mnmt_model.transformer import ModelConfig, build_model, initialise
import mnmt_model.training.run, mnmt_model.optim.adafactor
initialise(build_model(ModelConfig(d_model=16, d_ff=32), 40), seed=1)
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "torch" in loaded
    assert not {"torch.distributed.tensor", "torch.distributed.fsdp", "torch._dynamo"} & loaded


@pytest.mark.parametrize("path", COMMANDS)
def test_the_list_shows_the_start_of_each_docstring(path: str) -> None:
    module, _, function = path.partition(":")
    command = getattr(__import__(f"mnmt_model.cli.{module}", fromlist=[function]), function)
    assert command.__doc__.startswith(COMMANDS[path].removesuffix("."))
    assert app[app.name_transform(function)].default_command is command


def test_shells_complete_the_commands() -> None:
    names = [app.name_transform(path.partition(":")[2]) for path in COMMANDS]
    script = app.generate_completion(shell="bash")
    assert all(name in script for name in names)
