from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from mnmt_data.errors import DataError, StudyError
from mnmt_data.study import StructureError, read_study, structure


@dataclass(frozen=True, kw_only=True)
class Train:
    steps: int = 10
    rate: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Data:
    tasks: tuple[str, ...]


def write(folder, text):
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_sections_become_dataclasses(tmp_path):
    study = read_study(write(tmp_path, 'name = "s"\n[data]\ntasks = ["en-de"]\n[train]\nsteps = 3\n'))
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
            "[data] holds an unknown key `task`; the valid ones are tasks; `tasks` may be meant.",
        ),
        ('name = "s"\n[data]', "`data.tasks` must be given, but is missing."),
        ('name = "s"\n[data]\ntasks = "en-de"', "`data.tasks` must be an array, but is 'en-de'."),
        ('name = "s"\ndata = 3', "`data` must be a table, but is 3."),
        (
            'name = "s"\n[data]\ntasks = []\ntsaks = []',
            "[data] holds an unknown key `tsaks`; the valid ones are tasks; `tasks` may be meant.",
        ),
        ("", "`name` must be a folder name such as 'en-de-small', but is None."),
        ("name = 3", "`name` must be a folder name such as 'en-de-small', but is 3."),
        ('name = ""', "`name` must be a folder name such as 'en-de-small', but is ''."),
        ('name = "../up"', "`name` must be a folder name such as 'en-de-small', but is '../up'."),
        (
            'name = "s"\n[dat]',
            "unknown key `dat`; the valid ones are name, data, model, train, sweep, target; "
            "`data` may be meant.",
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


@dataclass(frozen=True, kw_only=True)
class Inner:
    kind: Literal["a", "b"] = "a"
    size: int = 1

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"`size` must be at least 1, but is {self.size}.")


@dataclass(frozen=True, kw_only=True)
class Outer:
    names: tuple[str, ...]
    rate: float = 0.5
    flag: bool = False
    path: Path | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    inner: Inner | None = None


def test_every_kind_of_field_is_read():
    table = {
        "names": ["x", "y"],
        "rate": 3,
        "flag": True,
        "path": "a/b",
        "weights": {"x": 1, "y": 0.25},
        "inner": {"kind": "b", "size": 7},
    }
    assert structure(table, Outer, where="data") == Outer(
        names=("x", "y"),
        rate=3.0,
        flag=True,
        path=Path("a/b"),
        weights={"x": 1.0, "y": 0.25},
        inner=Inner(kind="b", size=7),
    )


def test_defaults_stand_in_for_what_is_left_out():
    assert structure({"names": []}, Outer, where="data") == Outer(names=())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "`data.names` must be given, but is missing."),
        ({"names": "abc"}, "`data.names` must be an array, but is 'abc'."),
        ({"names": 3}, "`data.names` must be an array, but is 3."),
        ({"names": ["a", 1]}, "`data.names[1]` must be a string, but is 1."),
        ({"names": [], "rate": True}, "`data.rate` must be a number, but is True."),
        ({"names": [], "rate": "1"}, "`data.rate` must be a number, but is '1'."),
        ({"names": [], "flag": 1}, "`data.flag` must be true or false, but is 1."),
        ({"names": [], "path": 1}, "`data.path` must be a path in quotes, but is 1."),
        ({"names": [], "weights": 1}, "`data.weights` must be a table, but is 1."),
        ({"names": [], "weights": {"x": "y"}}, "`data.weights['x']` must be a number, but is 'y'."),
        ({"names": [], "inner": 1}, "`data.inner` must be a table, but is 1."),
        ({"names": [], "inner": {"size": 2.5}}, "`data.inner.size` must be an integer, but is 2.5."),
        ({"names": [], "inner": {"size": 0}}, "[data.inner] `size` must be at least 1, but is 0."),
        ({"names": [], "inner": {"kind": "c"}}, "`data.inner.kind` must be one of 'a', 'b', but is 'c'."),
        (
            {"names": [], "inner": {"kid": "a"}},
            "[data.inner] holds an unknown key `kid`; the valid ones are kind, size; `kind` may be meant.",
        ),
        (7, "`data` must be a table, but is 7."),
    ],
)
def test_mistakes_are_named_by_their_key(table, message):
    with pytest.raises(StructureError) as raised:
        structure(table, Outer, where="data")
    assert str(raised.value) == message
