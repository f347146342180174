"""Options that say how a table is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import fit, observe

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Learning curves of several sizes, in columns of other names."""
    steps, sizes = np.meshgrid([500.0, 1000.0, 2000.0], np.geomspace(1e6, 3e7, 5))
    table = pd.DataFrame({"Model Size": sizes.ravel(), "Updates": steps.ravel()})
    table["dev loss"] = 1.5 + 60 * table["Model Size"] ** -0.3 + 20 * table["Updates"] ** -0.5
    table.assign(name="run of " + table["Model Size"].astype(str)).to_csv(
        tmp_path / "foreign.csv", index=False
    )
    return tmp_path / "foreign.csv"


OPTIONS = ("--column", "size=Model Size", "--column", "tokens=Updates", "--column", "value=dev loss")


def test_columns_are_mapped(run: Run, foreign: Path) -> None:
    status, out, err = run("fit", foreign, *OPTIONS, "--law", "chinchilla", "--json", "--refits", 0)
    assert (status, err) == (0, "")
    columns = {"size": "Model Size", "tokens": "Updates", "value": "dev loss"}
    expected = fit(observe(foreign, columns=columns), law="chinchilla").parameters
    values = {one["name"]: one["value"] for one in json.loads(out)["parameters"]}
    assert values == pytest.approx({name: float(expected[name].item()) for name in values}, rel=1e-6)


def test_runs_are_read_at_a_common_length(run: Run, foreign: Path) -> None:
    named = (*OPTIONS, "--column", "run=name", "--law", "power", "--json", "--refits", 0)
    at_end = json.loads(run("fit", foreign, *named)[1])["parameters"]
    assert json.loads(run("fit", foreign, *named, "--at", "tokens=2000")[1])["parameters"] == at_end
    earlier = json.loads(run("fit", foreign, *named, "--at", "tokens=700")[1])["parameters"]
    assert earlier[-1]["value"] > at_end[-1]["value"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--column", "size"), "--column size: must read NAME=COLUMN, such as size=params."),
        (
            ("--column", "sise=params"),
            "--column: `columns` must name columns of a run table (is `size` meant?)",
        ),
        (("--noise", "0.02"), "--noise goes with --uncertainty perturbation, but that is residual."),
        (("--at", "2000"), "--at 2000: must read step=NUMBER or tokens=NUMBER."),
        (("--at", "size=2000"), "--at size=2000: must read step=NUMBER or tokens=NUMBER."),
        (("--at", "step=-1"), "--at step=-1: must read step=NUMBER or tokens=NUMBER."),
        (
            ("--at", "step=1e9"),
            "no run is measured at step 1e+09, or before and after it; the lengths measured are",
        ),
    ],
)
def test_options_that_cannot_be_read_are_refused(
    run: Run, csv: Path, options: tuple[str, ...], message: str
) -> None:
    status, out, err = run("fit", csv, *options)
    assert (status, out) == (2, "")
    assert message in err


def test_the_examples_columns_have_their_names(run: Run) -> None:
    status, _, err = run("fit", "--example", "--column", "size=params")
    assert status == 2
    assert "--column goes with a table of your own" in err


def test_a_figure_of_another_format_is_refused_before_the_table_is_read(run: Run, tmp_path: Path) -> None:
    status, _, err = run("compare", tmp_path / "missing.csv", "--figure", "a.jpg")
    assert status == 2
    assert 'Invalid value "a.jpg" for --figure. It must end in .svg' in err


def test_one_model_at_several_lengths_needs_a_choice(run: Run, foreign: Path) -> None:
    status, _, err = run("fit", foreign, *OPTIONS, "--law", "power")
    assert status == 2
    assert "the same task, mixture and size after 500 and 2000 tokens, but the power law does not know" in err
    assert "(--at tokens=…)" in err
