"""The command line `mnmt-eval`, as tests run it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mnmt_eval.cli import main


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    stdout: bytes
    stderr: str


class CommandLine:
    """The command line, in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[bytes]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def run(self, *arguments: str | Path, stdin: bytes = b"", engine: str = "torch") -> Done:
        """Run a command; `engine` translates where the arguments name none, and "" stands for the default."""
        if arguments[:1] in (("score",), ("translate",)) and "--engine" not in arguments and engine:
            arguments = (*arguments, "--engine", engine)
        self.monkeypatch.setattr("sys.argv", ["mnmt-eval", *map(str, arguments)])
        self.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(status=ended.value.code, stdout=out, stderr=err.decode())

    def scored(self, *arguments: str | Path) -> list[dict[str, object]]:
        """The metrics that `score` prints."""
        done = self.run("score", *arguments, "--json")
        assert done.status == 0, done.stderr
        evals: list[dict[str, object]] = json.loads(done.stdout)["evals"]
        return evals

    def compared(self, *arguments: str | Path) -> list[dict[str, Any]]:
        """The comparisons that `compare` prints."""
        done = self.run("compare", *arguments, "--json")
        assert done.status == 0, done.stderr
        comparisons: list[dict[str, Any]] = json.loads(done.stdout)["comparisons"]
        return comparisons
