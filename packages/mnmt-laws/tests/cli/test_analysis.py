"""Commands from records to laws and reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("law", "names"),
    [
        ("joint", {"alpha", "beta", "l_inf"}),
        ("per-weighting", {"alpha", "beta", "l_inf"}),
        ("capacity", {"alpha", "beta", "l_inf", "c1", "c2", "c3"}),
    ],
)
def test_fit_prints_json_alone(run: Run, csv: Path, law: str, names: set[str]) -> None:
    status, out, _ = run("fit", csv, "--law", law, "--json", "--refits", 3)
    document = json.loads(out)
    assert status == 0
    assert list(document) == [
        "law", "equation", "formula", "objective", "uncertainty", "prior", "converged", "parameters",
        "diagnostics", "warnings",
    ]  # fmt: skip
    assert (document["law"], document["objective"], document["converged"]) == (law, "log-ols", True)
    assert {parameter["name"] for parameter in document["parameters"]} == names
    assert list(document["parameters"][0]) == [
        "task", "weight", "partner", "name", "value", "std", "lower", "upper",
    ]  # fmt: skip
    shared = [parameter for parameter in document["parameters"] if parameter["name"] == "alpha"]
    assert all((parameter["weight"] is None) == (law != "per-weighting") for parameter in shared)


def test_fit_prints_a_table_to_read(run: Run, csv: Path) -> None:
    status, out, _ = run("fit", csv, "--refits", 3, "--objective", "ols")
    assert status == 0
    assert "Fernandes et al. 2023, eq. 7; ols" in out
    assert "l_inf" in out


def test_collect_then_fit_is_fit_of_the_records(run: Run, study_records: Path, tmp_path: Path) -> None:
    for name in ("runs.csv", "runs.parquet"):
        status, out, err = run("collect", study_records, "-o", tmp_path / name)
        assert status == 0
        assert "of 48 runs" in out
        assert "warning: run broken failed and is left out" in err
    documents = [
        run("fit", source, "--json", "--refits", 0)[1] for source in (tmp_path / "runs.csv", study_records)
    ]
    assert documents[0] == documents[1]
    assert run("fit", tmp_path / "runs.parquet", "--json", "--refits", 0)[1] == documents[0]


def test_collect_adds_runs_to_a_table(run: Run, study_records: Path, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    status, out, _ = run("collect", study_records, "--into", path)
    assert status == 0
    assert out.endswith(" rows of 48 runs, 48 of them new and 0 replaced\n")
    assert run("collect", study_records, "--into", path)[1].endswith(", 0 of them new and 48 replaced\n")
    status, _, err = run("collect", study_records)
    assert (status, err.count("\n")) == (2, 1)
    assert "either --out TABLE, which it writes, or --into TABLE" in err


@pytest.mark.slow
def test_compare_gives_a_verdict(run: Run, small_csv: Path) -> None:
    status, out, _ = run("compare", small_csv, "--json")
    document = json.loads(out)
    assert status == 0
    assert document["decided"] == bool(document["best"]) == (not document["reasons"])
    assert {"joint", "limit-varies", "exponent-varies"} <= {row["law"] for row in document["laws"]}
    assert sum(row["share"] for row in document["forms"]) == pytest.approx(1.0)


def test_the_example_needs_no_file(run: Run) -> None:
    status, out, _ = run("fit", "--example", "--json", "--refits", 0)
    assert status == 0
    assert {row["task"] for row in json.loads(out)["parameters"]} == {"xx-aa", "xx-bb"}


@pytest.mark.slow
def test_report_says_where_it_is_and_what_it_found(run: Run, small_csv: Path, tmp_path: Path) -> None:
    status, out, _ = run("report", small_csv, "--refits", 0)
    lines = out.splitlines()
    assert status == 0
    assert lines[-1] == str(tmp_path / "report" / "index.html")
    assert (tmp_path / "report" / "index.html").is_file()
    assert 2 <= len(lines) <= 8  # the advice, its quality, the path


@pytest.mark.slow
def test_report_prints_json_alone(run: Run, small_csv: Path, tmp_path: Path) -> None:
    _, out, _ = run("report", small_csv, "--json", "--refits", 3, "-o", tmp_path / "page")
    assert json.loads(out)["index"] == str(tmp_path / "page" / "index.html")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "rows 2 and 3: `size` must be a count, but is 10; if it is in millions"),
        (
            ("--column", "value=de", "--column", "value=fr"),
            "--column value: is given twice; give it once, with",
        ),
    ],
)
def test_collect_asks_what_a_fit_would_ask(
    run: Run, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "t.csv").write_text("size,value\n10,3.0\n20,2.9\n")
    status, _, err = run("collect", tmp_path / "t.csv", "-o", tmp_path / "out.csv", *options)
    assert (status, message in err, (tmp_path / "out.csv").exists()) == (2, True, False)
