"""How commands end."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mnmt_laws
from mnmt_laws.cli.console import counted_seconds, group_warnings, print_stages

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_seconds_and_is_left_clean(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with counted_seconds(every=0.001):
        time.sleep(0.05)
    shown = capsys.readouterr().err
    assert ("… 0 s\r" in shown) == is_terminal
    assert shown.endswith(" \r") == is_terminal


def test_a_long_stage_says_which_law_is_fitted_and_how_far_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    solver, fits = (logging.getLogger(f"mnmt_laws.{name}") for name in ("solver.descent", "fitting.task_fit"))
    shown = ""
    with print_stages(every=0.01) as begin:
        begin("fit the law of the table")
        fits.info("refit the joint law to en-de 200 times")
        solver.info("120 of 200 searches ended")
        for _ in range(1000):
            shown += capsys.readouterr().err
            if " searches" in shown:
                break
            time.sleep(0.01)
    assert " s: fit the law of the table\n" in shown
    assert "table: refit the joint law to en-de 200 times: 120 of 200 searches ended\n" in shown


def test_stages_leave_a_finer_level_and_other_handlers_alone(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("mnmt_laws")
    caplog.set_level(logging.DEBUG, "mnmt_laws")
    with print_stages():
        log.info("a search ended")
        assert log.level == logging.DEBUG
    assert (log.level, log.propagate, caplog.messages) == (logging.DEBUG, True, [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "missing.csv"), "missing.csv: no such file"),
        (("fit", "runs.csv", "--law", "eq7"), "no law is called 'eq7'; `mnmt-laws laws` lists them all"),
        (("fit", "runs.csv", "--lww", "joint"), "--lww"),
        (("fit", "runs.csv", "--refits", "-1"), "--refits"),
        (("fit", "runs.csv", "--refits", "0.5"), "--refits: '0.5' must be a whole number"),
        (("fit", "runs.csv", "--refits", "99999999999"), "--refits"),
        (("frontier", "runs.csv", "--size", "inf"), "`size` must be a finite number above 0"),
        (
            ("frontier", "runs.csv", "--size", "1e5", "--tokens", "1e6", "--law", "capacity"),
            "1e+06 need runs of several training lengths",
        ),
        (("fit", "runs.csv", "--metric", "ter"), "the table has chrf, loss"),
        (("fit", "runs.csv", "--testset", "news"), "no row has testset 'news'"),
        (("frontier", "runs.csv", "--size", "0"), "--size"),
        (("collect", ".", "-o", "x.csv"), "no run records here"),
        (("report", "runs.csv", "--out", "runs.csv"), "runs.csv"),
        (("fit",), "give a run table, a folder of run records, or --example; neither was given"),
        (("fit", "runs.csv", "--example"), "or --example; both were given"),
        (("fit", "runs.csv", "--law", "chinchilla"), "this law needs `tokens` above 0 in every row"),
        (
            ("design", "runs.csv", "--budget", "1e-9", "--law", "capacity", "--refits", "10"),
            "`budget` must be at least",
        ),
        (("design", "runs.csv", "--runs", "0"), "--runs"),
        (("design", "runs.csv", "--out", "runs.txt"), "--out runs.txt: must end in .toml."),
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


def test_importing_loads_no_torch() -> None:
    code = "import sys, mnmt_laws.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_bug_keeps_its_traceback(run: Run, csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_: object, **__: object) -> None:
        np.zeros(3).reshape(2, 2)  # a ValueError that no argument caused

    monkeypatch.setattr("mnmt_laws.cli.analysis.fit_observations", break_down)
    with pytest.raises(ValueError, match="cannot reshape array"):
        run("fit", csv)


def test_arguments_raise_the_error_that_the_command_line_prints() -> None:
    root = Path(mnmt_laws.__file__).parent
    plain = [path.name for path in root.rglob("*.py") if "raise ValueError(" in path.read_text("utf-8")]
    assert plain == []


def test_tasks_that_share_a_warning_share_its_line() -> None:
    lines = ["a: no run.", "b: no run.", "a: 3 rows.", "b: 4 rows.", "a: c1 is open.", "a: c2 is open.", "x"]
    assert group_warnings([*lines, "x"]) == [
        "a, b: no run.",
        "a: 3 rows. Likewise, with other numbers: b.",
        "a: c1 is open.",
        "a: c2 is open.",
        "x",
    ]


def test_warnings_come_last_and_the_path_after_them(run: Run, study_records: Path, tmp_path: Path) -> None:
    _, out, err = run("collect", study_records, "--out", tmp_path / "runs.csv")
    assert out.splitlines()[-1].startswith(str(tmp_path / "runs.csv"))
    assert all(line.startswith("warning: ") for line in err.splitlines())
