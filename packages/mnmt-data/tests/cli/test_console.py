import json
import sys
from pathlib import Path

import pytest
from cyclopts import App

from mnmt_data.cli.console import run_app
from mnmt_data.errors import UserError


class MistakeError(UserError):
    pass


@pytest.fixture
def outcome(monkeypatch, capsys):
    app = App(name="tool")

    @app.command
    def status(number: int):
        return number

    @app.command
    def speak(*, word: str = "hello"):
        print(word)

    @app.command
    def fail(kind: str):
        if kind == "mistake":
            raise MistakeError("file.txt:3: two\nlines of trouble")
        if kind == "missing":
            Path("no/such/file").read_text(encoding="utf-8")
        if kind == "interrupt":
            raise KeyboardInterrupt
        raise RuntimeError("a bug")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tool", *arguments])
        with pytest.raises(SystemExit) as raised:
            run_app(app, prog="tool")
        captured = capsys.readouterr()
        return raised.value.code, captured.out, captured.err

    return run


def test_success_is_0(outcome):
    assert outcome("speak", "--word", "hi") == (0, "hi\n", "")


def test_windows_is_refused_in_one_line(outcome, monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Windows")
    message = "tool: Windows is not supported; run it in WSL, the Windows Subsystem for Linux.\n"
    assert outcome("speak") == (2, "", message)


def test_a_returned_number_is_the_status(outcome):
    assert outcome("status", "3") == (3, "", "")


def test_help_is_success(outcome):
    status, out, err = outcome("--help")
    assert (status, err) == (0, "")
    assert "speak" in out


@pytest.mark.parametrize(
    "arguments", [["speak", "-h"], ["--help", "speak"], ["speak", "--help", "--version"]]
)
def test_the_help_of_a_command_names_its_options(outcome, arguments):
    status, out, err = outcome(*arguments)
    assert (status, err) == (0, "")
    assert out.startswith("Usage: tool speak")
    assert "--word" in out


def test_help_of_no_command_is_a_mistake(outcome):
    status, out, err = outcome("spaek", "--help")
    assert (status, out) == (2, "")
    assert 'Unknown command "spaek"' in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fail", "mistake"], "tool: file.txt:3: two lines of trouble\n"),
        (["fail", "missing"], "tool: no/such/file: No such file or directory\n"),
        (["fail"], "tool: --kind is missing; see --help.\n"),
        (["fail", "--kind"], 'tool: Command "fail" parameter --kind requires an argument.\n'),
        (["speak", "--wrod", "x"], "tool: Unknown option: --wrod. Did you mean --word?\n"),
    ],
)
def test_a_mistake_is_one_line_and_2(outcome, arguments, message):
    assert outcome(*arguments) == (2, "", message)


@pytest.mark.parametrize("arguments", [["spaek"], ["status", "three"], ["speak", "extra", "more"]])
def test_wrong_arguments_are_one_line_and_2(outcome, arguments):
    status, out, err = outcome(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("tool: ")
    assert err.count("\n") == 1


def test_interruption_is_130(outcome):
    assert outcome("fail", "interrupt") == (130, "", "tool: interrupted\n")


def test_a_bug_keeps_its_traceback(monkeypatch):
    app = App(name="tool")

    @app.default
    def default():
        raise RuntimeError("a bug")

    monkeypatch.setattr(sys, "argv", ["tool"])
    with pytest.raises(RuntimeError, match="a bug"):
        run_app(app, prog="tool")


def test_torchrun_finds_the_reason_where_it_looks_for_it(outcome, monkeypatch, tmp_path):
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))
    assert outcome("fail", "mistake")[0] == 2
    reason = json.loads(path.read_text(encoding="utf-8"))["message"]
    assert reason["errorCode"] == 2
    assert reason["extraInfo"]["py_callstack"] == "tool: file.txt:3: two lines of trouble"


def test_a_command_line_may_phrase_mistakes(monkeypatch, capsys):
    app = App(name="tool")

    @app.command
    def fail():
        raise MistakeError("`n_best` is 0.")

    monkeypatch.setattr(sys, "argv", ["tool", "fail"])
    with pytest.raises(SystemExit):
        run_app(app, prog="tool", phrase=lambda error: str(error).replace("n_best", "--n-best"))
    assert capsys.readouterr().err == "tool: `--n-best` is 0.\n"
