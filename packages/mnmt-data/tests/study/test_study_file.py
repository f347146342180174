from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import EntryPoint

import pytest

from mnmt_data.errors import DataError, StudyError
from mnmt_data.study import read_study, study_file, unknown_key
from mnmt_data.study import sections as sections_module


@dataclass(frozen=True, kw_only=True)
class Train:
    steps: int = 10
    rate: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Data:
    tasks: tuple[str, ...]


@pytest.fixture(autouse=True)
def sections(monkeypatch):
    """Register the sections of this file in place of those of the installed packages."""
    registered = {"data": Data, "train": Train}
    for module in (study_file, sections_module):
        monkeypatch.setattr(module, "section_configs", lambda: registered)
    monkeypatch.setattr(study_file, "study_checks", lambda: ())
    return registered


def write(folder, text):
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_sections_become_dataclasses(tmp_path):
    study = read_study(write(tmp_path, '\ufeffname = "s"\n[data]\ntasks = ["en-de"]\n[train]\nsteps = 3\n'))
    assert (study.name, study.path) == ("s", tmp_path / "study.toml")
    assert study.section("data", Data) == Data(tasks=("en-de",))
    assert study.section("train", Train) == Train(steps=3)


def test_absent_section_is_its_defaults(tmp_path):
    assert read_study(write(tmp_path, 'name = "s"')).section("train", Train) == Train()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "s"', "section [data] is missing."),
        (
            'name = "s"\n[data]\ntask = ["en-de"]',
            "[data] holds an unknown key `task`; `tasks` may be meant.",
        ),
        ('name = "s"\n[data]', "`data.tasks` must be given, but is missing."),
        ('name = "s"\n[data]\ntasks = "en-de"', "`data.tasks` must be an array, but is 'en-de'."),
        ('name = "s"\ndata = 3', "`data` must be a table, but is 3."),
        (
            'name = "s"\n[data]\ntasks = []\ntsaks = []',
            "[data] holds an unknown key `tsaks`; `tasks` may be meant.",
        ),
        ("", "`name` must be given, before the first section: name = 'en-de-small'."),
        (
            "[data]\ntasks = []\nname = 's'",
            "`name` must be given, before the first section: name = 'en-de-small'.",
        ),
        (
            'name = "s"\n[data.train]',
            "[data] holds an unknown key `train`, which belongs to the file, as the section [train].",
        ),
        ("name = 3", "`name` must be a folder name such as 'en-de-small', but is 3."),
        ('name = ""', "`name` must be a folder name such as 'en-de-small', but is ''."),
        ('name = "../up"', "`name` must be a folder name such as 'en-de-small', but is '../up'."),
        (
            'name = "s"\n[dat]',
            "unknown key `dat`; `data` may be meant.",
        ),
        ('name = "s"\nsteps = 3', "unknown key `steps`, which belongs to [train]."),
        ('name = "s"\n[train]\ntasks = []', "[train] holds an unknown key `tasks`, which belongs to [data]."),
        (
            'name = "s"\n[train]\nstep-s = 1',
            "[train] holds an unknown key `step-s`; `steps` may be meant.",
        ),
        (
            'name = "s"\n[data]\ntasks = []\n[train]\nsteps = "3"',
            "`train.steps` must be an integer, but is '3'.",
        ),
        ('name = "s"\n[train]\nsteps = 2e3', "`train.steps` must be an integer, but is 2000.0."),
        (
            'name = "s"\n[data]\ntasks = ["C:\\temp"]',
            "'C:\\temp' holds a tab or another control character; write it in '…', "
            "where a backslash is no escape.",
        ),
        ("name = ", "not a TOML file: Invalid value (at end of document)"),
    ],
)
def test_mistakes_name_file_and_key(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(StudyError) as raised:
        read_study(path).section("data", Data)
    assert str(raised.value) == f"{path}: {message}"


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.toml: no such study file"):
        read_study(tmp_path / "none.toml")


def test_file_that_is_not_utf_8_is_named(tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes('name = "é"'.encode("latin-1"))
    with pytest.raises(StudyError, match=r"latin\.toml: not a TOML file"):
        read_study(path)


def test_hyphens_in_keys_are_named():
    assert unknown_key("warmup-steps", ["warmup_steps"]) == "`warmup-steps`; it is written `warmup_steps`."


def test_checks_of_packages_see_the_whole_study(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(study_file, "study_checks", lambda: (seen.append,))
    study = read_study(write(tmp_path, 'name = "s"\n[train]\nsteps = 3'))
    assert seen == [study]


def test_sections_of_absent_packages_are_passed_over(tmp_path):
    study = read_study(write(tmp_path, 'name = "s"\n[model]\nanything = 1\n[train]\nsteps = 3'))
    assert study.unchecked == ("model",)


def test_packages_that_cannot_be_loaded_are_as_if_absent(monkeypatch):
    points = [
        EntryPoint("a", "fractions:Fraction", "group"),
        EntryPoint("b", "fractions:NoSuchName", "group"),
        EntryPoint("c", "no_such_module:Name", "group"),
    ]
    monkeypatch.setattr(sections_module, "entry_points", lambda group: points)
    assert dict(sections_module._load("group")) == {"a": Fraction}
