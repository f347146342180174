from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from mnmt_eval.translate.workers import ForkedWorkers

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def source_of(results: Path, pair: str = "xx-bb") -> bytes:
    return (results / "data" / "text" / f"test.{pair}.xx").read_bytes()


def translated(command_line: CommandLine, run: Path, *arguments: object, stdin: bytes) -> list[str]:
    done = command_line.run("translate", "--run", run, *map(str, arguments), stdin=stdin)
    assert done.status == 0, done.stderr
    *lines, end = done.stdout.decode().split("\n")
    assert end == ""
    return lines


def test_a_line_for_a_line_as_score_translates_them(
    command_line: CommandLine, results: Path, tiny_run: Path
) -> None:
    command_line.scored(tiny_run, "--beam", "4", "--metric", "chrf")
    stdin = b"\n  \n" + source_of(results).replace(b"\n", b"\r\n").removesuffix(b"\r\n")
    lines = translated(command_line, tiny_run, "--task", "xx-bb", "--window-lines", 3, stdin=stdin)
    expected = (tiny_run / "translations" / "test.xx-bb.txt").read_text(encoding="utf-8").splitlines()
    assert lines == ["", "", *expected]
    assert any(expected)


def test_each_device_has_a_process(
    command_line: CommandLine, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("translate", "--run", tiny_run, "--task", "xx-aa")
    alone = command_line.run(*arguments, stdin=b"a\nb\nc\n")
    counts = []

    class CountedWorkers(ForkedWorkers[Any, Any]):
        def __init__(self, count: int, start: Any) -> None:
            counts.append(count)
            super().__init__(count, start)

    monkeypatch.setattr("mnmt_eval.translate.parallel.ForkedWorkers", CountedWorkers)
    monkeypatch.setattr("mnmt_eval.translate.parallel.find_devices", lambda name: ("cpu", "cpu", "cpu"))
    assert command_line.run(*arguments, stdin=b"a\nb\nc\n").stdout == alone.stdout
    assert counts == [3]


@pytest.mark.parametrize("options", [["--jobs", "2"], ["--jobs", "3", "--window-lines", "2"]])
def test_jobs_and_batches_change_nothing(
    command_line: CommandLine, results: Path, tiny_run: Path, options: list[str]
) -> None:
    arguments = ("--task", "xx-aa", "--n-best", "3", "--json")
    alone = translated(command_line, tiny_run, *arguments, stdin=source_of(results))
    together = translated(command_line, tiny_run, *arguments, *options, stdin=source_of(results))
    for one, other in zip(map(json.loads, alone), map(json.loads, together), strict=True):
        assert [c["text"] for c in one["n_best"]] == [c["text"] for c in other["n_best"]]
        assert [c["score"] for c in one["n_best"]] == pytest.approx([c["score"] for c in other["n_best"]])


def test_the_forms_of_what_is_written_agree(command_line: CommandLine, results: Path, tiny_run: Path) -> None:
    stdin = b"\n" + source_of(results)
    text = translated(command_line, tiny_run, "--task", "xx-aa", stdin=stdin)
    n_best = translated(command_line, tiny_run, "--task", "xx-aa", "--n-best", 3, stdin=stdin)
    objects = translated(command_line, tiny_run, "--task", "xx-aa", "--n-best", 3, "--json", stdin=stdin)
    assert [row.split("\t") for row in n_best] == [
        [str(line["line"]), f"{result['score']:.6f}", result["text"]]
        for line in map(json.loads, objects)
        for result in line["n_best"]
    ]
    assert [json.loads(line)["text"] for line in objects] == text


def test_a_checkpoint_can_be_named_and_drawn_from(
    command_line: CommandLine, results: Path, tiny_run: Path
) -> None:
    arguments = ["--task", "xx-aa", "--sampling.seed", "3"]
    samples = translated(command_line, tiny_run, *arguments, stdin=source_of(results))
    checkpoint = tiny_run / "checkpoints" / "step-00000040"
    done = command_line.run(
        "translate", "--model", checkpoint, *arguments, "--window-lines", "1", stdin=source_of(results)
    )
    assert done.stdout.decode().splitlines() == samples


def test_lines_that_name_their_pair(command_line: CommandLine, results: Path, tiny_run: Path) -> None:
    src = source_of(results).decode().splitlines()
    tagged = "".join(f"xx-{'ab'[i % 2] * 2}\t{line}\n" for i, line in enumerate(src))
    expected = {
        pair: translated(command_line, tiny_run, "--task", pair, stdin=source_of(results))
        for pair in ("xx-aa", "xx-bb")
    }
    lines = translated(command_line, tiny_run, stdin=tagged.encode())
    assert lines == [expected[f"xx-{'ab'[i % 2] * 2}"][i] for i in range(len(src))]
    assert expected["xx-aa"] != expected["xx-bb"]


def test_a_line_of_six_thousand_tokens_loses_nothing(
    command_line: CommandLine, results: Path, tiny_run: Path
) -> None:
    word = source_of(results).split()[0]
    stdin = source_of(results) + (word + b" ") * 6_000 + b"\n" + source_of(results)
    arguments = ("translate", "--run", tiny_run, "--task", "xx-aa", "--beam", "1", "--json")
    done = command_line.run(*arguments, stdin=stdin)
    assert done.status == 0
    assert "stdin: longer than 8 tokens, so translated in parts: line 21\n" in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["line"] for line in lines] == list(range(1, 42))
    assert lines[20]["parts"] >= 6_000 / 6
    assert [line["text"] for line in lines[:20]] == [line["text"] for line in lines[21:]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "de"], "must be SRC-TGT, such as en-de"),
        (["--task", "xx-cc"], "has no task of cc; its languages are aa, bb, xx."),
        (["--task", "aa-xx"], "the vocabulary has no tag <2xx>; prepare a task into xx."),
        (["--task", "qq-aa"], "has no task of qq; its languages are aa, bb, xx."),
        ([], "stdin:1: must begin with its task and a tab, such as `en-de<TAB>text`; or name the task of"),
        (["--task", "xx-aa", "--out", "{tmp}/file/out"], "file: no such folder; make it, or name another"),
        (["--task", "xx-aa", "--out", "{tmp}/none/out"], "none: no such folder; make it, or name another"),
        (["--task", "xx-aa", "--out", "{tmp}"], "folder: is a folder; name a file."),
        (["--task", "xx-aa", "--out", "{tmp}/file"], "exists, and no file.record.json beside it says"),
        (
            ["--task", "xx-aa", "--beam", "2", "--n-best", "3"],
            "`--n-best` must be at most `--beam` (2), but is 3.",
        ),
        (["--task", "xx-aa", "--jobs", "0"], 'Invalid value "0" for --jobs. Must be >= 1.'),
        (["--task", "xx-aa", "--device", "cuda:99"], "`--device` must be one of cpu"),
        (["--task", "xx-aa", "--run", "{tmp}"], "holds no checkpoint"),
        (
            ["--task", "xx-aa", "--run", "{tmp}/none"],
            "none: no such run or checkpoint; its folder holds file.",
        ),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    command_line: CommandLine, tiny_run: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("precious\n", encoding="utf-8")
    run = [] if "--run" in arguments else ["--run", tiny_run]
    formatted = (argument.format(tmp=folder) for argument in arguments)
    done = command_line.run("translate", *run, *formatted, stdin=b"a\n")
    assert (done.status, done.stdout) == (2, b"")
    (complaint,) = done.stderr.splitlines()
    assert complaint.startswith("mnmt-eval: ")
    assert message in complaint
    assert [path.name for path in folder.iterdir()] == ["file"]


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize(
    ("arguments", "last", "message"),
    [
        (["--task", "xx-aa"], b"\xff", "; convert the file to UTF-8."),
        ([], b"xx-cc\ta", "results/data: has no task of cc; its languages are aa, bb, xx."),
    ],
)
def test_what_comes_before_a_bad_line_is_translated(
    command_line: CommandLine,
    results: Path,
    tiny_run: Path,
    arguments: list[str],
    last: bytes,
    message: str,
    jobs: str,
) -> None:
    source = source_of(results).splitlines(keepends=True)
    tag = b"xx-aa\t" if not arguments else b""
    good = b"".join(tag + line for line in source)
    expected = translated(command_line, tiny_run, *arguments, stdin=good)
    done = command_line.run(
        "translate", "--run", tiny_run, *arguments, "--jobs", jobs, stdin=good + last + b"\n" + good
    )
    assert done.status == 2
    (complaint,) = done.stderr.splitlines()
    assert complaint.startswith("mnmt-eval: stdin:21: ")
    assert complaint.endswith(message)
    assert done.stdout.decode().splitlines() == expected


def start(run: Path, *arguments: str | Path, **options: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "mnmt_eval", "translate", "--run", str(run), "--engine", "torch"]
    command += map(str, arguments)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stderr=pipe, **{"stdout": pipe, **options})  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Tests in the background may run with SIGINT ignored, which children inherit; they do not a handler."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_leaves_what_the_next_command_goes_on_from(
    command_line: CommandLine, results: Path, tiny_run: Path, tmp_path: Path
) -> None:
    out, source = tmp_path / "out.aa", source_of(results)
    arguments = ("--task", "xx-aa", "--out", out, "--jobs", "2", "--window-lines", "3")
    expected = translated(command_line, tiny_run, "--task", "xx-aa", stdin=source)
    with start(tiny_run, *arguments) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(source.splitlines(keepends=True)[:10]))
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while process.poll() is None and not (out.exists() and out.stat().st_size):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 130
    remaining = out.read_text(encoding="utf-8").splitlines()
    assert told.decode().splitlines() == [
        f"{out}: has {len(remaining)} lines; the same command continues after them.",
        "mnmt-eval: interrupted",
    ]
    assert remaining == expected[: len(remaining)]
    assert translated(command_line, tiny_run, *arguments, stdin=source) == []
    assert out.read_text(encoding="utf-8").splitlines() == expected


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line(results: Path, tiny_run: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = start(tiny_run, "--task", "xx-aa", stdout=full)
        _, told = process.communicate(source_of(results))
    assert (process.returncode, told) == (2, b"mnmt-eval: stdout: No space left on device\n")
