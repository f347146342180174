"""Laws by name: a list of all, and the name that may be meant."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from mnmt_laws.cli.laws import _GROUPS
from mnmt_laws.laws import LAWS

Run = Callable[..., tuple[int, str, str]]


def test_all_laws_are_listed_with_formula_and_source(run: Run) -> None:
    status, out, _ = run("laws", "--json")
    assert status == 0
    listed = {law["name"]: law for law in json.loads(out)["laws"]}
    assert set(listed) == set(LAWS)
    assert all(law["formula"] and law["source"] for law in listed.values())


def test_twelve_laws_in_groups_are_in_the_help() -> None:
    names = [name for group in _GROUPS.values() for name in group]
    assert len(names) == len(set(names)) == 12
    assert set(names) <= set(LAWS)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("fit", "--example", "--law", "capacit"), "did you mean capacity?"),
        (("recommend", "--example", "--metric", "los"), "did you mean loss?"),
        (("recommend", "--example", "--prefer", "xx-a:1,xx-bb:2"), "did you mean xx-aa?"),
    ],
)
def test_a_wrong_name_is_answered_with_the_one_that_may_be_meant(
    run: Run, arguments: tuple[str, ...], meant: str
) -> None:
    status, _, err = run(*arguments)
    assert status == 2
    assert meant in err
    assert err.count("\n") == 1
