"""What each command imports, and what it does where torch and mnmt-model are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUNS = {"torch", "mnmt_model"}
NUMBERS = {"numpy", "sacrebleu"}
SLOW = RUNS | {"pyarrow", "sentencepiece", "scipy", "pandas", "filelock"}
FILES = ("one.de", "two.de", "--reference", "ref.de", "--task", "en-de")

TRACED = """
import sys
from mnmt_eval.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
BARRED = """
import sys
sys.modules.update(dict.fromkeys(('torch', 'mnmt_model')))  # as if they were not installed
from mnmt_eval.cli import main
main()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, last in {"one": "gut", "two": "schlecht", "ref": "gut"}.items():
        (tmp_path / f"{name}.de").write_text(f"Hallo du\nDas ist {last}\n", encoding="utf-8")
    (tmp_path / "n-best.tsv").write_text("1\t-0.5\tHallo du\n1\t-0.6\tHallo\n", encoding="utf-8")
    return tmp_path


def run(program: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "barred"),
    [
        (("compare", "--help"), SLOW | NUMBERS),
        (("rerank", "--help"), SLOW | NUMBERS),
        (("score", "--help"), RUNS | {"sacrebleu"}),
        (("translate", "--help"), RUNS | {"sacrebleu"}),
        (("analyse", "--help"), SLOW | {"sacrebleu"}),
        (("compare", *FILES), SLOW | {"jinja2"}),
        (("compare", *FILES, "--page", "page"), SLOW),
        (("rerank", "n-best.tsv"), SLOW | {"jinja2"}),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_a_command_imports_only_what_it_uses(
    folder: Path, arguments: tuple[str, ...], barred: set[str]
) -> None:
    done = run(TRACED, folder, *arguments)
    assert done.returncode == 0, done.stderr
    assert not barred & set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments", [("compare", *FILES), ("compare", *FILES, "--page", "page"), ("score", "--help")]
)
def test_plain_files_need_neither_torch_nor_mnmt_model(folder: Path, arguments: tuple[str, ...]) -> None:
    done = run(BARRED, folder, *arguments)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "runs"),
        ("analyse", "runs"),
        ("translate", "--run", "run", "--task", "en-de"),
        ("compare", "run"),
        ("compare", "runs"),
    ],
    ids=" ".join,
)
def test_a_command_that_needs_runs_names_the_extra(folder: Path, arguments: tuple[str, ...]) -> None:
    for run_folder in (folder / "run", folder / "runs" / "one"):
        run_folder.mkdir(parents=True)
        (run_folder / "run.json").write_text("{}", encoding="utf-8")
    done = run(BARRED, folder, *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"mnmt-eval: {arguments[0]} needs torch") or "run needs torch" in line
    assert "mnmt-eval[runs]" in line
