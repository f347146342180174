"""`translate` and `score` with CTranslate2, beside our own search."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import CommandLine

CTRANSLATE2 = ("--engine", "ctranslate2")
ALL_FORMS = [(), ("--n-best", "3"), ("--n-best", "3", "--json")]

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(scope="module")
def exported_results(trained_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results whose run has been exported, in a process of its own as commands do."""
    folder = Path(shutil.copytree(trained_results, tmp_path_factory.mktemp("exported") / "results"))
    with start(folder / "runs" / "tiny-run", "--task", "xx-aa", *CTRANSLATE2) as process:
        _, stderr = process.communicate(b"\n")
    assert process.returncode == 0, stderr
    return folder


@pytest.fixture
def run(exported_results: Path, tmp_path: Path) -> Path:
    """An exported run, to change at will."""
    return Path(shutil.copytree(exported_results, tmp_path / "results")) / "runs" / "tiny-run"


def start(run: Path, *arguments: str | Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "mnmt_eval", "translate", "--run", str(run), *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


def source_of(run: Path) -> bytes:
    return (run.parents[1] / "data" / "text" / "test.xx-aa.xx").read_bytes()


def close(line: str, other: str) -> bool:
    """The same but for the rounding of numbers."""
    if line.startswith("{"):
        one, two = (json.loads(each) for each in (line, other))
        scores = [
            [c.pop(key) for c in each["n_best"]] for each in (one, two) for key in ("score", "log_prob")
        ]
        one.pop("score"), two.pop("score")
        return bool(one == two and scores[:2] == [pytest.approx(each, abs=1e-4) for each in scores[2:]])
    if "\t" in line:
        (number, score, text), (other_number, other_score, other_text) = line.split("\t"), other.split("\t")
        same = (number, text) == (other_number, other_text)
        return bool(same and float(score) == pytest.approx(float(other_score), abs=1e-4))
    return line == other


@pytest.mark.parametrize("form", ALL_FORMS, ids=" ".join)
def test_outputs_and_remarks_are_those_of_our_search(
    command_line: CommandLine, run: Path, form: Sequence[str]
) -> None:
    word = source_of(run).split()[0]
    stdin = b"\n" + source_of(run) + b" \n" + (word + b" ") * 300 + b"\n"
    arguments = ("translate", "--run", run, "--task", "xx-aa", *form)
    arguments = (*arguments, "--max-length", "0x+3", "--window-lines", "7")
    ours = command_line.run(*arguments, stdin=stdin)
    theirs = command_line.run(*arguments, *CTRANSLATE2, stdin=stdin)
    assert theirs.status == 0, theirs.stderr
    pairs = zip(ours.stdout.decode().split("\n"), theirs.stdout.decode().split("\n"), strict=True)
    assert [pair for pair in pairs if not close(*pair)] == []
    assert theirs.stderr.splitlines()[:-1] == ours.stderr.splitlines()[:-1]
    assert "translated in parts: line 23\n" in theirs.stderr
    assert "cut off at its maximal length" in theirs.stderr


def test_a_file_is_gone_on_with_by_the_same_engine_and_compute_type_only(
    command_line: CommandLine, run: Path, tmp_path: Path
) -> None:
    out, source = tmp_path / "out.aa", source_of(run)
    arguments = ("translate", "--run", run, "--task", "xx-aa", "--window-lines", "3")
    expected = command_line.run(*arguments, *CTRANSLATE2, stdin=source).stdout
    half = b"".join(source.splitlines(keepends=True)[:10])
    assert command_line.run(*arguments, *CTRANSLATE2, "--out", out, stdin=half).status == 0
    begun = out.read_bytes()
    for other in ((), (*CTRANSLATE2, "--compute", "int8")):
        done = command_line.run(*arguments, *other, "--out", out, stdin=source)
        assert (done.status, out.read_bytes()) == (2, begun)
        assert "was made with engine ctranslate2-" in done.stderr.splitlines()[-1]
    with out.open("ab") as file:
        file.write(b"half a li")  # as a killed process leaves it
    assert command_line.run(*arguments, *CTRANSLATE2, "--out", out, stdin=source).status == 0
    assert out.read_bytes() == expected


@pytest.mark.slow
def test_two_commands_at_once_make_one_export(results: Path, tiny_run: Path) -> None:
    processes = [start(tiny_run, "--task", "xx-aa", *CTRANSLATE2) for _ in range(2)]
    outputs = [process.communicate(source_of(tiny_run)) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0] != b""
    assert b"".join(stderr for _, stderr in outputs).count(b"exporting the checkpoint") == 1
    (folder,) = (path for path in (tiny_run / "exports").iterdir() if path.is_dir())
    assert json.loads((folder / "certificate.json").read_text(encoding="utf-8"))["agrees"]


def test_by_default_ctranslate2_translates_what_our_search_finds(
    command_line: CommandLine, run: Path
) -> None:
    arguments = ("translate", "--run", run, "--task", "xx-aa")
    ours, theirs = (command_line.run(*arguments, stdin=source_of(run), engine=name) for name in ("torch", ""))
    assert (theirs.status, theirs.stdout) == (0, ours.stdout)
    done = command_line.run("score", run, "--metric", "chrf", "--json", engine="")
    evals = json.loads(done.stdout)["evals"]
    values = [each["value"] for each in command_line.scored(run, "--metric", "chrf")]
    assert [each["value"] for each in evals] == values
    assert all("|stop:filled|maxlen:2x+20|engine:ctranslate2-4." in each["signature"] for each in evals)


@pytest.mark.parametrize("command", ["translate", "score"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "marian"], "--engine"),
        ([*CTRANSLATE2, "--length-penalty", "gnmt-1"], "has no length penalty but `power`; take"),
        ([*CTRANSLATE2, "--early-stopping", "exact"], "no rule but `filled`; take `--engine torch`."),
        ([*CTRANSLATE2, "--beam", "0"], "`--beam` must be at least 1"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    command_line: CommandLine, tiny_run: Path, command: str, arguments: Sequence[str], message: str
) -> None:
    start_of_command = ("score", tiny_run) if command == "score" else ("translate", "--run", tiny_run)
    task = ("--task", "xx-aa") if command == "translate" else ("--metric", "chrf")
    done = command_line.run(*start_of_command, *task, *arguments, stdin=b"a\n")
    assert (done.status, done.stdout) == (2, b"")
    (complaint,) = done.stderr.splitlines()
    assert complaint.startswith("mnmt-eval: ")
    assert message in complaint
    assert not (tiny_run / "exports").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*CTRANSLATE2, "--compute", "int3"], "--compute"),
        ([*CTRANSLATE2, "--compute", "float16"], "`--compute` must be one of "),
        (["--compute", "int8"], "`--compute int8` needs `--engine ctranslate2`"),
        ([*CTRANSLATE2, "--sampling.seed", "1"], "cannot draw a sample again; take `--engine torch`."),
    ],
)
def test_what_translate_refuses(
    command_line: CommandLine, tiny_run: Path, arguments: Sequence[str], message: str
) -> None:
    done = command_line.run("translate", "--run", tiny_run, "--task", "xx-aa", *arguments, stdin=b"a\n")
    assert (done.status, done.stdout) == (2, b"")
    assert message in done.stderr
