"""What the documentation names is there, and what it tells the reader to type works."""

import ast
import re
from pathlib import Path

import pytest

from mnmt_data.study import read_study
from mnmt_model import SweepConfig, run_configs
from mnmt_model.sweep import GoalConfig

ROOT = Path(__file__).resolve().parents[2]
PLACE = re.compile(r"`(?P<file>mnmt_[\w/]+\.py|csrc/[\w/]+\.\w+):(?P<name>[\w.]+)`")
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *(path for path in sorted(ROOT.glob("docs/**/*.md")) if not {"_build", "api"} & set(path.parts)),
    *sorted(ROOT.glob("packages/*/README.md")),
)
BLOCK = re.compile(r"^```\w*\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ )?(mnmt-[a-z]+) ([a-z-]+)", flags=re.MULTILINE)
COMMAND_IN_TEXT = re.compile(r"(?:`|^ {4})(mnmt-[a-z]+) ([a-z-]+)", flags=re.MULTILINE)


def commands_of(page):
    """The commands that a page names in blocks and in the text, as {(program, command)}."""
    text = page.read_text(encoding="utf-8")
    blocks = "\n".join(BLOCK.findall(text))
    return {*COMMAND.findall(blocks), *COMMAND_IN_TEXT.findall(BLOCK.sub("", text))}


COMMANDS = set().union(*map(commands_of, PAGES))


@pytest.mark.parametrize("program", sorted({program for program, _ in COMMANDS}))
def test_commands_exist(tmp_path, command, program):
    run = command(tmp_path, program, "--help")
    assert run.returncode == 0, run.stderr
    listed = re.findall(r"^│ ([a-z-]+)", run.stdout, flags=re.MULTILINE)
    assert {name for other, name in COMMANDS if other == program} <= set(listed)


def test_study_of_your_own_data(tmp_path, command, made_up_text):
    page = (ROOT / "docs/own-data.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "mine.toml").write_text(recipe, encoding="utf-8")
    (tmp_path / "corpora/mine").mkdir(parents=True)
    for task in ("en-de", "en-fr"):
        for language in task.split("-"):
            file = tmp_path / f"corpora/mine/train.{task}.{language}"
            file.write_text(made_up_text(language, 4000), encoding="utf-8")
    prepared = command(tmp_path, "mnmt-data", "prepare", "mine.toml")
    assert prepared.returncode == 0, prepared.stderr
    plans = run_configs(read_study(tmp_path / "mine.toml"), tmp_path / "results/mine/data")
    assert len({plan.name for plan in plans if plan.branch is None}) == 16


@pytest.mark.parametrize("path", sorted(ROOT.glob("studies/*.toml")), ids=lambda path: path.stem)
def test_studies_are_valid(path):
    study = read_study(path)  # with all checks of all packages
    assert study.unchecked == ()
    assert study.name == path.stem
    if "goal" in study.tables:
        fitted = study.section("sweep", SweepConfig).fit.sizes
        assert study.section("goal", GoalConfig).size not in fitted


def definitions(tree, prefix=""):
    """The names of the functions and classes of a file, methods as `Class.method`."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield f"{prefix}{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from definitions(node, prefix=f"{node.name}.")


def is_there(file, name):
    """Whether a file of a package defines a name."""
    paths = [*ROOT.glob(f"packages/*/src/{file}"), *ROOT.glob(f"packages/*/{file}")]
    if not paths:
        return False
    text = paths[0].read_text(encoding="utf-8")
    return (
        name in definitions(ast.parse(text))
        if file.endswith(".py")
        else bool(re.search(rf"\b{name}\b", text))
    )


def test_walks_through_the_code_name_what_is_there():
    page = (ROOT / "docs/reading-the-code.md").read_text(encoding="utf-8")
    places = [match.groups() for match in PLACE.finditer(page)]
    assert len(places) >= 20
    assert [f"{file}:{name}" for file, name in places if not is_there(file, name)] == []
