"""The goal that a study states: `recommend` and `report` take it as they take the same options."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

QUICK = ("--law", "capacity", "--refits", 10)
IMPORTANCE = "[goal]\nimportance = { en-de = 1, en-zh = 4 }"


def state(runs: Path, goal: str) -> Path:
    (runs / "study.toml").write_text(f'name = "tiny"\n{goal}\n', encoding="utf-8")
    return runs


@pytest.mark.parametrize(
    ("goal", "option"),
    [
        (IMPORTANCE, ("--prefer", "en-de:1,en-zh:4")),
        ('[goal]\naim = "worst"', ("--aim", "worst")),
        ('[goal]\nsize = "large"', ()),
    ],
)
def test_a_goal_advises_what_its_option_advises(
    run: Run, study_records: Path, goal: str, option: tuple[str, ...]
) -> None:
    expected = run("recommend", study_records, *QUICK, *option, "--json")[1]
    state(study_records, goal)
    assert run("recommend", study_records, *QUICK, "--json")[1] == expected


def test_an_option_takes_the_place_of_the_goal(run: Run, study_records: Path) -> None:
    options = (*QUICK, "--aim", "mean")
    expected = run("recommend", study_records, *options)
    assert "Where losses count 1 (en-de) and 4 (en-zh)" not in expected[1]
    assert run("recommend", state(study_records, IMPORTANCE), *options) == expected


@pytest.mark.slow
def test_the_report_is_for_the_goal(run: Run, study_records: Path, tmp_path: Path) -> None:
    def advice(name: str, *options: str) -> object:
        _, _, err = run("report", study_records, "--refits", 2, "-o", tmp_path / name, *options)
        assert ("the goal is" in err) == (name == "stated")
        return json.loads((tmp_path / name / "report.json").read_text())["recommendation"]

    expected = advice("option", "--prefer", "en-de:1,en-zh:4")
    state(study_records, IMPORTANCE)
    assert advice("stated") == expected


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ('[goal]\naim = "best"', "study.toml: [goal] `aim` must be one of mean, worst, but is best."),
        (
            "[goal]\nimportance = { en-de = 1 }",
            "study.toml: [goal] `importance` lacks en-zh; give it a number.",
        ),
    ],
)
def test_a_wrong_goal_costs_one_line(run: Run, study_records: Path, goal: str, message: str) -> None:
    status, _, err = run("recommend", state(study_records, goal), *QUICK)
    assert (status, err.count(message)) == (2, 1)
