"""The command line: what it prints, and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mnmt_laws.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs the command and returns its exit status, stdout and stderr."""

    def invoke(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mnmt-laws", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return invoke


@pytest.fixture
def csv(study_table: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    study_table.to_csv(path, index=False)
    return path


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
    assert list(document) == ["law", "objective", "converged", "parameters", "warnings"]
    assert (document["law"], document["objective"], document["converged"]) == (law, "log-ols", True)
    assert {parameter["name"] for parameter in document["parameters"]} == names
    assert list(document["parameters"][0]) == ["task", "weight", "name", "value", "std"]
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


def test_frontier_prints_json_and_draws(run: Run, csv: Path, tmp_path: Path) -> None:
    status, out, _ = run("frontier", csv, "--size", "1e6", "--json", "--figure", tmp_path / "frontier.png")
    document = json.loads(out)
    assert status == 0
    assert (
        len(document["weights"]) == len(document["predicted"]["en-de"]) == len(document["predicted"]["en-zh"])
    )
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")


def test_recommend_gives_weights_that_sum_to_one(run: Run, csv: Path) -> None:
    _, out, _ = run("recommend", csv, "--size", "1e5", "--prefer", "en-de:2,en-zh:1", "--json")
    assert sum(json.loads(out)["weights"].values()) == pytest.approx(1)
    status, out, _ = run("recommend", csv, "--size", "1e5")
    assert status == 0
    assert out.startswith("en-de: weight 0.")


def test_report_says_where_it_is_and_what_it_found(run: Run, study_records: Path) -> None:
    status, out, _ = run("report", study_records, "--refits", 3)
    index = study_records.parent / "report" / "index.html"
    lines = out.splitlines()
    assert status == 0
    assert lines[0] == str(index)
    assert index.is_file()
    assert 3 <= len(lines) <= 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "missing.csv"), "missing.csv: no such file"),
        (("fit", "runs.csv", "--law", "eq7"), 'Choose from: "per-weighting", "joint", "capacity"'),
        (("fit", "runs.csv", "--lww", "joint"), "--lww"),
        (("fit", "runs.csv", "--refits", "-1"), "--refits"),
        (("fit", "runs.csv", "--metric", "ter"), "the table has chrf, loss"),
        (("fit", "runs.csv", "--testset", "news"), "no row has testset 'news'"),
        (("frontier", "runs.csv", "--size", "0"), "--size"),
        (("frontier", "runs.csv"), "--size"),
        (
            ("recommend", "runs.csv", "--size", "1e5", "--prefer", "en-de:1"),
            "--prefer: must give each task a number",
        ),
        (("recommend", "runs.csv", "--size", "1e5", "--prefer", "x"), "as en-de:1,en-zh:1, but is 'x'"),
        (("collect", ".", "-o", "x.csv"), "no run records here"),
        (("report", "runs.csv", "--out", "runs.csv"), "runs.csv"),
        (("nonsense",), "nonsense"),
    ],
)
def test_a_mistake_costs_one_line_and_status_2(
    run: Run, csv: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(csv.parent)
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("mnmt-laws: ")
    assert message in err
    assert err.count("\n") == 1


def test_collect_refuses_other_formats(run: Run, study_records: Path, tmp_path: Path) -> None:
    status, _, err = run("collect", study_records, "-o", tmp_path / "runs.xlsx")
    assert status == 2
    assert "must end in .csv or .parquet" in err


def test_interrupting_exits_130(run: Run, csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mnmt_laws.cli.open_source", interrupt)
    assert run("fit", csv) == (130, "", "mnmt-laws: interrupted\n")


def test_importing_loads_no_torch() -> None:
    code = "import sys, mnmt_laws.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
