from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal

import pytest

from mnmt_data.study import Changes, StructureError, structure


@dataclass(frozen=True, kw_only=True)
class Inner:
    kind: Literal["a", "b"] = "a"
    size: int = 1

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"`size` must be at least 1, but is {self.size}.")


class InnerChanges(Changes):
    configs = (Inner,)


@dataclass(frozen=True, kw_only=True)
class Outer:
    names: tuple[str, ...]
    rate: float = 0.5
    flag: bool = False
    path: Path | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    inner: Inner | None = None
    rows: tuple[Inner, ...] = ()
    changes: dict[str, InnerChanges] = field(default_factory=dict)


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
        ({"names": [], "rate": True}, "`data.rate` must be a number, but is true."),
        ({"names": [], "rate": "1"}, "`data.rate` must be a number, but is '1'."),
        ({"names": [], "flag": 1}, "`data.flag` must be true or false, but is 1."),
        ({"names": [], "path": 1}, "`data.path` must be a path in quotes, but is 1."),
        ({"names": [], "weights": 1}, "`data.weights` must be a table, but is 1."),
        ({"names": [], "weights": {"x": "y"}}, "`data.weights.x` must be a number, but is 'y'."),
        ({"names": [], "inner": 1}, "`data.inner` must be a table, but is 1."),
        ({"names": [], "inner": {"size": 2.5}}, "`data.inner.size` must be an integer, but is 2.5."),
        ({"names": [], "inner": {"size": 0}}, "[data.inner] `size` must be at least 1, but is 0."),
        ({"names": [], "inner": {"kind": "c"}}, "`data.inner.kind` must be one of 'a', 'b', but is 'c'."),
        (
            {"names": [], "inner": {"kid": "a"}},
            "[data.inner] holds an unknown key `kid`; `kind` may be meant.",
        ),
        (7, "`data` must be a table, but is 7."),
        (
            {"names": [], "inner": {"size": 10**23}},
            f"`data.inner.size` must be below 2^63, as TOML's integers are, but is {10**23}.",
        ),
        (
            {"names": [], "flag": date(2026, 1, 1)},
            "`data.flag` must be true or false, but is 2026-01-01.",
        ),
        (
            {"names": [], "rows": {"size": 1}},
            "`data.rows` must be an array of tables, `[[…]]`, but is {'size': 1}.",
        ),
        (
            {"names": [], "changes": {"x": {"kin": 1}}},
            "[data.changes.x] holds an unknown key `kin`; `kind` may be meant.",
        ),
        (
            {"names": [], "changes": {"x": {"size": "1"}}},
            "`data.changes.x.size` must be an integer, but is '1'.",
        ),
    ],
)
def test_mistakes_are_named_by_their_key(table, message):
    with pytest.raises(StructureError) as raised:
        structure(table, Outer, where="data")
    assert str(raised.value) == message


def test_changes_keep_only_what_is_written():
    changes = structure({"names": [], "changes": {"x": {"size": 3}}}, Outer, where="data").changes
    assert changes == {"x": {"size": 3}}
