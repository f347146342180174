from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mnmt_laws.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs the command and returns its exit status, stdout and stderr."""

    def invoke(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mnmt-laws", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return invoke


@pytest.fixture(scope="session")
def csv(study_table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "runs.csv"
    study_table.to_csv(path, index=False)
    return path


@pytest.fixture
def small_csv(study_table: pd.DataFrame, tmp_path: Path) -> Path:
    """The losses of one task at three weights."""
    rows = study_table[study_table["task"].eq("en-de") & study_table["weight"].isin([0.3, 0.5, 1.0])]
    rows = rows[rows["metric"].eq("loss")]
    path = tmp_path / "runs.csv"
    rows.to_csv(path, index=False)
    return path
