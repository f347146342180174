"""The command line: what it prints, and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mnmt_laws import load
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
    assert list(document) == [
        "law", "equation", "formula", "objective", "uncertainty", "converged", "parameters", "diagnostics",
        "warnings",
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


def test_frontier_prints_json_and_draws(run: Run, csv: Path, tmp_path: Path) -> None:
    status, out, _ = run("frontier", csv, "--size", "1e6", "--json", "--figure", tmp_path / "frontier.png")
    document = json.loads(out)
    assert status == 0
    assert list(document) == ["size", "tasks", "efficient", "warnings"]
    lengths = {len(values) for task in document["tasks"].values() for values in task.values()}
    assert lengths == {len(document["efficient"])}
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")


def test_recommend_gives_weights_that_sum_to_one(run: Run, csv: Path) -> None:
    _, out, _ = run("recommend", csv, "--size", "1e5", "--prefer", "en-de:2,en-zh:1", "--json")
    assert sum(json.loads(out)["weights"].values()) == pytest.approx(1)
    status, out, _ = run("recommend", csv, "--size", "1e5")
    assert status == 0
    assert out.startswith("en-de: weight 0.")


def test_recommend_answers_targets(run: Run, csv: Path) -> None:
    status, out, _ = run("recommend", csv, "--targets", "en-de:0.3,en-zh:0.4", "--json", "--refits", 20)
    smallest = json.loads(out)
    assert status == 0
    assert smallest["size"] > 0
    asked = (
        "recommend",
        csv,
        "--targets",
        "en-de:0.3,en-zh:0.4",
        "--size",
        2 * smallest["size"],
        "--refits",
        20,
    )
    assert json.loads(run(*asked, "--json")[1])["feasible"] is True
    assert "met with probability" in run(*asked)[1]
    _, out, _ = run("recommend", csv, "--targets", "en-de:0.01", "--refits", 0)
    assert out.startswith("infeasible: L∞ of en-de (")


def test_compare_gives_a_verdict(run: Run, csv: Path, tmp_path: Path) -> None:
    status, out, _ = run("compare", csv, "--json", "--refits", 20, "--figure", tmp_path / "laws.svg")
    document = json.loads(out)
    assert status == 0
    assert document["best"] == "joint"
    assert {row["law"] for row in document["laws"]} == {
        "joint", "limit-varies", "exponent-varies", "per-weighting",
    }  # fmt: skip
    assert (tmp_path / "laws.svg").read_text().lstrip().startswith("<?xml")
    assert "“β varies”: it has the lowest BIC" in run("compare", csv, "--refits", 20)[1]


def test_design_proposes_runs(run: Run, csv: Path, tmp_path: Path) -> None:
    command = ("design", csv, "--quantity", "weight:en-de@size=1e6", "--refits", 30)
    status, out, _ = run(*command, "--json", "--runs", 2, "--figure", tmp_path / "design.svg")
    document = json.loads(out)
    assert status == 0
    assert len(document["runs"]) == 2
    assert document["runs"][1]["std"] < document["runs"][0]["std"] < document["std"]
    assert (tmp_path / "design.svg").is_file()
    assert "standard deviation now" in run(*command)[1]


def test_a_saved_fit_is_loaded_again(run: Run, csv: Path, tmp_path: Path) -> None:
    for name in ("fit.nc", "fit.json"):
        status, out, _ = run("fit", csv, "--refits", 3, "--json", "-o", tmp_path / name)
        loaded = load(tmp_path / name)
        assert status == 0
        alpha = [row["value"] for row in json.loads(out)["parameters"] if row["name"] == "alpha"]
        assert loaded.parameters.alpha.values.tolist() == alpha


def test_the_example_needs_no_file(run: Run) -> None:
    status, out, _ = run("fit", "--example", "--json", "--refits", 0)
    assert status == 0
    assert {row["task"] for row in json.loads(out)["parameters"]} == {"xx-aa", "xx-bb"}


def test_every_command_prints_json(run: Run, study_records: Path, tmp_path: Path) -> None:
    _, out, _ = run("collect", study_records, "-o", tmp_path / "runs.csv", "--json")
    assert json.loads(out)["runs"] == 48
    _, out, _ = run("report", study_records, "--json", "--refits", 0, "--out", tmp_path / "page")
    assert json.loads(out)["index"] == str(tmp_path / "page" / "index.html")


def test_report_says_where_it_is_and_what_it_found(run: Run, study_records: Path) -> None:
    status, out, _ = run("report", study_records, "--refits", 3)
    index = study_records.parent / "report" / "index.html"
    lines = out.splitlines()
    assert status == 0
    assert lines[0] == str(index)
    assert index.is_file()
    assert 3 <= len(lines) <= 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "missing.csv"), "missing.csv: no such file"),
        (("fit", "runs.csv", "--law", "eq7"), 'Choose from: "power", "per-weighting", "joint"'),
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
        (("fit",), "give a run table or a folder of run records, or --example; neither was given"),
        (("fit", "runs.csv", "--example"), "or --example; both was given"),
        (("fit", "runs.csv", "--delta", "0.1"), "--delta goes with --objective huber"),
        (("fit", "runs.csv", "--law", "chinchilla"), "this law needs `tokens` above 0 in every row"),
        (("fit", "runs.csv", "-o", "fit.txt"), "fit.txt"),
        (("recommend", "runs.csv"), "give --size, for the best weights at a size, or --targets"),
        (("recommend", "runs.csv", "--prefer", "a:1", "--targets", "b:1"), "are two questions; give one"),
        (("recommend", "runs.csv", "--targets", "en-fr:1"), "--targets: must read TASK:NUMBER"),
        (
            ("design", "runs.csv", "--quantity", "slope:en-de"),
            "`quantity` must read loss:TASK@size=1e9,p=0.3",
        ),
        (
            ("design", "runs.csv", "--quantity", "limit:en-de", "--budget", "1e-9"),
            "`budget` must be at least",
        ),
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

    monkeypatch.setattr("mnmt_laws.cli.options.open_source", interrupt)
    assert run("fit", csv) == (130, "", "mnmt-laws: interrupted\n")


def test_importing_loads_no_torch() -> None:
    code = "import sys, mnmt_laws.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
