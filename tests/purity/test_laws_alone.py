"""The laws wheel by itself: it works, and no torch came with it."""

import importlib.metadata
import importlib.util
import json
import subprocess

import pytest

BETA, ALPHA, IRREDUCIBLE = {0.25: 30.0, 0.75: 20.0}, 0.3, 1.25
SIZES = (10_000, 30_000, 100_000, 300_000)


@pytest.mark.parametrize("name", ["torch", "mnmt-data", "mnmt-model", "mnmt-eval", "mnmt-moe-ext"])
def test_nothing_else_is_installed(name):
    assert importlib.util.find_spec(name.replace("-", "_")) is None
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version(name)


def test_a_typed_table_gives_its_law(tmp_path):
    table = tmp_path / "losses.csv"
    rows = [
        f"{size},xx-aa,{weight},loss,{beta * size**-ALPHA + IRREDUCIBLE}"
        for weight, beta in BETA.items()
        for size in SIZES
    ]
    table.write_text("\n".join(["size,task,weight,metric,value", *rows]) + "\n", encoding="utf-8")
    command = ["mnmt-laws", "fit", str(table), "--law", "joint", "--refits", "0", "--prior", "none", "--json"]
    fitted = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    values = {row["name"]: row["value"] for row in fitted["parameters"] if row["weight"] is None}
    assert values == pytest.approx({"alpha": ALPHA, "l_inf": IRREDUCIBLE}, rel=1e-3)
