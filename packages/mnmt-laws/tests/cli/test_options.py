"""Options that say how a table is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mnmt_laws import ResidualBootstrap, fit, observe

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Learning curves of several sizes, in columns of other names."""
    tokens, sizes = np.meshgrid([5e7, 1e8, 2e8], np.geomspace(1e6, 3e7, 5))
    table = pd.DataFrame({"Model Size": sizes.ravel(), "Seen": tokens.ravel()})
    table["dev loss"] = 1.5 + 60 * table["Model Size"] ** -0.3 + 6000 * table["Seen"] ** -0.5
    table.assign(name="run of " + table["Model Size"].astype(str)).to_csv(
        tmp_path / "foreign.csv", index=False
    )
    return tmp_path / "foreign.csv"


OPTIONS = ("--column", "size=Model Size", "--column", "tokens=Seen", "--column", "value=dev loss")


def read(run: Run, source: Path, *options: str) -> pd.DataFrame:
    """Collect a table, and read it."""
    path = source.with_name("runs.csv")
    assert run("collect", source, *options, "--out", path)[0] == 0
    return pd.read_csv(path)


def test_columns_are_mapped(run: Run, foreign: Path) -> None:
    collected = read(run, foreign, *OPTIONS)
    columns = {"size": "Model Size", "tokens": "Seen", "value": "dev loss"}
    expected, found = (
        fit(observe(source, columns=names), law="chinchilla", uncertainty=ResidualBootstrap(refits=0))
        for source, names in ((foreign, columns), (collected, None))
    )
    xr.testing.assert_allclose(expected.parameters, found.parameters)


def test_runs_are_read_at_a_common_length(run: Run, foreign: Path) -> None:
    named = (*OPTIONS, "--column", "run=name")
    earlier, at_end = (
        read(run, foreign, *named, "--at", f"tokens={length}")["value"] for length in (7e7, 2e8)
    )
    assert len(earlier) == len(at_end) == 5
    assert (earlier > at_end).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--column", "size"), "--column size: must read NAME=COLUMN, such as size=params."),
        (
            ("--column", "sise=params"),
            "--column: `columns` must name columns of a run table (is `size` meant?)",
        ),
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


def test_one_model_at_several_lengths_needs_a_choice(run: Run, foreign: Path) -> None:
    status, _, err = run("fit", foreign, *OPTIONS, "--law", "power")
    assert status == 2
    assert (
        "the same task, mixture and size after 5e+07 and 2e+08 tokens, but the power law does not know" in err
    )
    assert "(--at tokens=…)" in err


def test_runs_are_described_for_tables_only(run: Run, foreign: Path) -> None:
    sizes = foreign.with_name("sizes.csv")
    sizes.write_text("run,size\nx,1e6\n", encoding="utf-8")
    status, _, err = run("fit", "--example", "--runs", sizes, "--law", "power")
    assert (status, "--mixtures and --runs go with a table of your own" in err) == (2, True)
