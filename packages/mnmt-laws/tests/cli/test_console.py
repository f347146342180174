"""How commands end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


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
        (("recommend", "runs.csv", "--size", "1e5", "--prefer", "x"), "as in en-de:1,en-zh:1, but is 'x'"),
        (("collect", ".", "-o", "x.csv"), "no run records here"),
        (("report", "runs.csv", "--out", "runs.csv"), "runs.csv"),
        (("fit",), "give a run table, a folder of run records, or --example; neither was given"),
        (("fit", "runs.csv", "--example"), "or --example; both were given"),
        (("fit", "runs.csv", "--delta", "0.1"), "--delta goes with --objective huber"),
        (("fit", "runs.csv", "--law", "chinchilla"), "this law needs `tokens` above 0 in every row"),
        (("fit", "runs.csv", "-o", "fit.txt", "--refits", "0"), "fit.txt"),
        (("recommend", "runs.csv"), "give --size, for the best weights at a size, or --targets"),
        (("recommend", "runs.csv", "--prefer", "a:1", "--targets", "b:1"), "are two questions; give one"),
        (
            ("recommend", "runs.csv", "--targets", "en-fr:1"),
            "--targets: names 'en-fr'; the tasks are en-de, en-zh.",
        ),
        (
            ("design", "runs.csv", "--quantity", "slope:en-de", "--refits", "10"),
            "`quantity` must read loss:TASK@size=1e9,p=0.3",
        ),
        (
            ("design", "runs.csv", "--quantity", "limit:en-de", "--budget", "1e-9", "--refits", "10"),
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


def test_interrupting_exits_130(run: Run, csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mnmt_laws.cli.options.open_source", interrupt)
    assert run("fit", csv) == (130, "", "mnmt-laws: interrupted\n")


def test_importing_loads_no_torch() -> None:
    code = "import sys, mnmt_laws.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
