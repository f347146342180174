"""What the documentation tells the reader to type works."""

import re
from pathlib import Path

import pytest

from mnmt_data.study import read_study
from mnmt_model import run_configs

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("packages/*/README.md")))
COMMAND = re.compile(r"^(mnmt-[a-z]+) ([a-z]+)", flags=re.MULTILINE)
TOLD = sorted({told for page in PAGES for told in COMMAND.findall(page.read_text(encoding="utf-8"))})
WORDS = [
    f"{first}{second}" for first in ("ka", "lo", "mi", "nu", "se") for second in ("ra", "ti", "vo", "ze")
]


def text(language, count):
    """Different sentences of five words."""
    numbers = (f"{number * 7919 % 100_000:05}" for number in range(count))
    return "".join(" ".join(f"{language}{digit}" for digit in number) + "\n" for number in numbers)


@pytest.mark.parametrize(("program", "subcommand"), TOLD, ids=map(" ".join, TOLD))
def test_commands_exist(tmp_path, command, program, subcommand):
    told = command(tmp_path, program, subcommand, "--help")
    assert told.returncode == 0, told.stderr
    assert "Usage" in told.stdout


def test_study_of_your_own_data(tmp_path, command):
    (recipe,) = re.findall(
        r"```toml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    (tmp_path / "mine.toml").write_text(recipe, encoding="utf-8")
    (tmp_path / "corpora/mine").mkdir(parents=True)
    for task in ("en-de", "en-fr"):
        for language in task.split("-"):
            file = tmp_path / f"corpora/mine/train.{task}.{language}"
            file.write_text(text(language, 4000), encoding="utf-8")
    prepared = command(tmp_path, "mnmt-data", "prepare", "mine.toml")
    assert prepared.returncode == 0, prepared.stderr
    plans = run_configs(read_study(tmp_path / "mine.toml"), tmp_path / "results/mine/data")
    assert len({plan.name for plan in plans}) == 16
