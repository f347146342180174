import io
import sys
from collections.abc import Sequence

import pytest

from mnmt_model.cli.progress import StepProgress

LINE = {"step": 1200, "loss": 3.2138, "tokens_per_second": 18_230, "mfu": 0.4312, "lr": 0.00125}


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("steps", "seconds", "taken", "lines"),
    [
        (20, 1.0, range(1, 7), ["2/20  ETA 0:00:18", "4/20  ETA 0:00:16", "6/20  ETA 0:00:14"]),
        (1000, 25.0, range(1, 10), ["4/1000  ETA 6:55:00", "7/1000  ETA 6:53:45"]),
        (23, 0.0, (22, 23), ["22/23", "23/23"]),
    ],
    ids=["every tenth", "every minute", "the last"],
)
def test_a_log_has_a_line_every_tenth_of_the_way_and_every_minute(
    steps: int, seconds: float, taken: Sequence[int], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    progress = StepProgress(steps, clock=clock)
    for step in taken:
        clock.now += seconds
        progress.step(step)
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == len(lines)
    assert all(line.startswith(f"step {start}") for line, start in zip(printed, lines, strict=True))


def test_a_log_line_tells_what_metrics_jsonl_told_last(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = StepProgress(5000, clock=clock)
    progress.step(1199)
    progress.log(LINE)
    clock.now += 10.0
    progress.step(1200)
    clock.now += 60.0
    progress.step(1500)
    assert capsys.readouterr().err.splitlines() == [
        "step 1500/5000  loss 3.214  18.2k tokens/s  MFU 43%  ETA 0:13:34"
    ]


def test_the_time_left_of_a_resumed_run_is_of_its_own_steps(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = StepProgress(1000, clock=clock)
    clock.now += 500.0  # Opening the data, and the first step: no step's time.
    progress.step(899)
    clock.now += 36.0
    progress.step(900)
    assert capsys.readouterr().err == "step 900/1000  ETA 1:00:00\n"


def test_values_that_are_not_known_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    progress = StepProgress(10, clock=Clock())
    progress.log(LINE | {"loss": None, "mfu": None})
    progress.step(1)
    assert capsys.readouterr().err == "step 1/10  18.2k tokens/s\n"


def test_a_terminal_has_a_bar_with_the_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = StepProgress(5000)
    progress.step(1199)
    progress.log(LINE)
    progress.step(1200)
    progress.close()
    assert "1200/5000" in terminal.getvalue()
    assert "loss=3.214, tokens/s=18.2k, MFU=43%, lr=0.00125" in terminal.getvalue()


def test_closing_before_the_first_step_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    StepProgress(10).close()
    assert capsys.readouterr() == ("", "")
