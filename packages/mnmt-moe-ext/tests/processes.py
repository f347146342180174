"""Scripts in processes that start at once: they fork from one that has torch and mnmt_moe_ext loaded."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch", "torch.distributed", "torch.utils.checkpoint", "mnmt_moe_ext"])
NO_CHANGES: Mapping[str, str] = MappingProxyType({})


def start(
    script: Path, *arguments: str, log: Path, environment: Mapping[str, str] = NO_CHANGES
) -> BaseProcess:
    """Start a script with its arguments; its stderr goes to `log`."""
    process = CONTEXT.Process(target=_run, args=(str(script), arguments, str(log), dict(environment)))
    process.start()
    return process


def _run(script: str, arguments: tuple[str, ...], log: str, environment: dict[str, str]) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.environ.update(environment)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))  # as python does
    runpy.run_path(script, run_name="__main__")
