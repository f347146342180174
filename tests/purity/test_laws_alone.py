"""The laws wheel by itself: it works, and no torch came with it."""

import importlib.metadata
import importlib.util
import json
import subprocess

import pytest

BETA, ALPHA, IRREDUCIBLE = {0.25: 30.0, 0.75: 20.0}, 0.3, 1.25
SIZES = (10_000, 30_000, 100_000, 300_000)


NOT_HERE = ["torch", "mnmt-data", "mnmt-model", "mnmt-eval", "mnmt-moe-ext", "pyarrow", "vl-convert-python"]


@pytest.mark.parametrize("name", NOT_HERE)
def test_nothing_else_is_installed(name):
    assert importlib.util.find_spec(name.replace("-", "_")) is None
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version(name)


@pytest.fixture
def table(tmp_path):
    table = tmp_path / "losses.csv"
    rows = [
        f"{size},xx-aa,{weight},loss,{beta * size**-ALPHA + IRREDUCIBLE}"
        for weight, beta in BETA.items()
        for size in SIZES
    ]
    table.write_text("\n".join(["size,task,weight,metric,value", *rows]) + "\n", encoding="utf-8")
    return table


def test_a_typed_table_gives_its_law(table):
    command = ["mnmt-laws", "fit", str(table), "--law", "joint", "--refits", "0", "--prior", "none", "--json"]
    fitted = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    values = {row["name"]: row["value"] for row in fitted["parameters"] if row["weight"] is None}
    assert values == pytest.approx({"alpha": ALPHA, "l_inf": IRREDUCIBLE}, rel=1e-3)


def test_a_report_without_extras_has_its_numbers_and_names_the_extra(table, tmp_path):
    command = ["mnmt-laws", "report", table, "--refits", "0", "--out", tmp_path / "report"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert sum('"mnmt-laws[svg]"' in line for line in done.stderr.splitlines()) == 1
    assert "xx-aa" in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))["tasks"] == ["xx-aa"]


def test_parquet_names_its_extra_in_one_line(tmp_path):
    (tmp_path / "runs.parquet").write_bytes(b"PAR1")
    command = ["mnmt-laws", "fit", tmp_path / "runs.parquet"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert '"mnmt-laws[parquet]"' in line
