from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine

from mnmt_data.store import checksum, file_lock, read_record
from mnmt_data.store.description import FileInfo, PreparedDescription
from mnmt_eval.metrics import metric
from mnmt_eval.runs import score
from mnmt_eval.runs.run_files import SentenceScores, scores_path
from mnmt_model.runs import read_evals


class Killed(BaseException):
    pass


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_each_metric_found_in_each_sentence_is_kept(command_line: CommandLine, tiny_run: Path) -> None:
    rows = command_line.scored(tiny_run, "--metric", "bleu,chrf++,ter")
    for row in rows:
        name, task = str(row["metric"]), str(row["task"])
        remaining = read_record(scores_path(tiny_run, "test", task, name), SentenceScores)
        assert remaining is not None
        own = metric(name, target=task[3:])
        assert len(remaining.statistics) == 20
        assert own.corpus(remaining.statistics).value == row["value"]
        assert f"{remaining.metric}|{remaining.search}" == row["signature"]
        assert remaining.metric == own.signature


def test_a_metric_more_needs_no_translating(
    command_line: CommandLine, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_line.scored(tiny_run, "--metric", "bleu")
    translations = files(tiny_run / "translations")
    with monkeypatch.context() as patched:
        patched.setattr(score, "translate", None)
        rows = command_line.scored(tiny_run, "--metric", "bleu,chrf")
    assert [row["metric"] for row in rows] == ["bleu", "chrf"] * 2
    assert files(tiny_run / "translations") == translations


def test_other_references_are_measured_without_translating_again(
    command_line: CommandLine, results: Path, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_line.scored(tiny_run, "--metric", "chrf")
    text = results / "data" / "text" / "test.xx-aa.aa"
    shutil.copy(tiny_run / "translations" / "test.xx-aa.txt", text)
    description = PreparedDescription.read(results / "data")
    file = FileInfo(bytes=text.stat().st_size, sha256=checksum(text))
    replace(description, files={**description.files, "text/test.xx-aa.aa": file}).write(results / "data")
    with monkeypatch.context() as patched:
        patched.setattr(score, "translate", None)
        rows = command_line.scored(tiny_run, "--metric", "chrf")
    assert {row["task"]: row["value"] for row in rows}["xx-aa"] == 100
    assert [each.task for each in read_evals(tiny_run) if each.metric == "chrf"] == [
        "xx-aa",
        "xx-bb",
        "xx-aa",
    ]


@pytest.mark.parametrize(
    ("moment", "after"),
    [*(("write_record", after) for after in range(4)), ("append_evals", 0), ("append_evals", 1)],
)
def test_a_kill_at_any_write_loses_nothing_and_repeats_nothing(
    command_line: CommandLine,
    tiny_run: Path,
    scored_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    after: int,
) -> None:
    write, calls = getattr(score, moment), 0

    def killed(*arguments: object) -> None:
        nonlocal calls
        if calls == after:
            raise Killed
        calls += 1
        write(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(score, moment, killed)
        with pytest.raises(Killed):
            command_line.scored(tiny_run)
    command_line.scored(tiny_run)
    assert read_evals(tiny_run) == read_evals(scored_run)
    ours, theirs = files(tiny_run), files(scored_run)
    assert ours.keys() == theirs.keys()
    translations = {name for name in ours if name.startswith("translations")}
    assert {ours[name] for name in translations} == {theirs[name] for name in translations}


def test_two_do_not_measure_a_run_at_once(command_line: CommandLine, tiny_run: Path) -> None:
    with file_lock(tiny_run / ".score.lock", name="run"):
        done = command_line.run("score", tiny_run)
    assert done.status == 2
    assert done.stderr.endswith("tiny-run: another process is writing it; wait for it or stop it.\n")
    assert command_line.run("score", tiny_run).status == 0


def test_scores_that_cannot_be_read_are_made_again(command_line: CommandLine, scored_run: Path) -> None:
    path = scores_path(scored_run, "test", "xx-aa", "bleu")
    whole, content = read_record(path, SentenceScores), path.read_bytes()
    for broken in (b"", b"no numbers", content[:-30]):
        path.write_bytes(broken)
        assert read_record(path, SentenceScores) is None
        command_line.scored(scored_run, "--metric", "bleu")
        again = read_record(path, SentenceScores)
        assert whole is not None
        assert again is not None
        np.testing.assert_array_equal(again.statistics, whole.statistics)
