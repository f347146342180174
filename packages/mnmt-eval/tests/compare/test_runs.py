"""Trained runs side by side, and beside plain files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import CommandLine
from text_files import write

from mnmt_data.store import checksum


def test_runs_are_compared_on_all_tasks_with_what_they_keep(
    command_line: CommandLine, scored_results: Path, scored_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path(shutil.copytree(scored_run, scored_run.with_name("other")))
    rows = command_line.scored(other, "--max-length", "2x+0")
    with monkeypatch.context() as patched:
        patched.setattr("mnmt_eval.metrics.sacrebleu_metrics.SacrebleuMetric._in_blocks", None)
        comparisons = command_line.compared(scored_results / "runs", "--baseline", "tiny-run")
    assert [(c["task"], c["sentences"]) for c in comparisons] == [("xx-aa", 20), ("xx-bb", 20)]
    values = [score["value"] for c in comparisons for m in c["metrics"] for score in m["systems"][:1]]
    assert values == [row["value"] for row in rows]


def test_a_run_and_a_plain_file_are_compared_on_the_runs_references(
    command_line: CommandLine, scored_results: Path, scored_run: Path, tmp_path: Path
) -> None:
    references = scored_results / "data" / "text" / "test.xx-aa.aa"
    (ours,) = command_line.compared(scored_run, f"perfect={references}", "--task", "xx-aa")
    assert [score["system"] for score in ours["metrics"][0]["systems"]] == ["tiny-run", "perfect"]
    assert ours["metrics"][1]["systems"][1]["value"] == 100
    assert ours["metrics"][1]["systems"][1]["against_baseline"]["p_value"] < 0.05


def test_runs_scored_on_as_many_sentences_are_compared_on_those(
    command_line: CommandLine, tiny_run: Path
) -> None:
    command_line.scored(tiny_run, "--max-sentences", "5")
    assert {c["sentences"] for c in command_line.compared(tiny_run)} == {5}


def test_a_run_scored_on_some_sentences_is_not_compared_on_all(
    command_line: CommandLine, results: Path, tiny_run: Path
) -> None:
    command_line.scored(tiny_run, "--max-sentences", "5")
    references = results / "data" / "text" / "test.xx-aa.aa"
    done = command_line.run("compare", tiny_run, f"perfect={references}", "--task", "xx-aa")
    assert done.status == 2
    assert (
        "test.xx-aa.txt: was scored with --max-sentences 5, but there are 20 references; score it without, "
        "or name the references of just these sentences with --reference."
    ) in done.stderr


def test_what_a_run_keeps_is_not_taken_for_scores_against_other_references(
    command_line: CommandLine, scored_results: Path, scored_run: Path, tmp_path: Path
) -> None:
    other = write(tmp_path / "ref", ["nothing alike"] * 20)
    options = ("--reference", other, "--task", "xx-aa", "--metric", "chrf")
    shutil.copy(scored_run / "translations" / "test.xx-aa.txt", tmp_path / "same.txt")
    (run,), (file,) = (
        command_line.compared(system, *options) for system in (scored_run, tmp_path / "same.txt")
    )
    assert run["metrics"][0]["systems"][0]["value"] == file["metrics"][0]["systems"][0]["value"]


@pytest.mark.parametrize("with_page", [False, True])
def test_translations_that_are_not_those_of_their_record_are_refused(
    command_line: CommandLine, scored_results: Path, scored_run: Path, tmp_path: Path, with_page: bool
) -> None:
    path = scored_run / "translations" / "test.xx-aa.txt"
    shutil.copy(scored_results / "data" / "text" / "test.xx-aa.aa", path)
    done = command_line.run("compare", scored_run, *["--page", tmp_path / "page"] * with_page)
    assert (done.status, done.stdout) == (2, b"")
    (line,) = done.stderr.splitlines()
    assert line.endswith(
        f"{path}: is not the file that test.xx-aa.json describes; run `mnmt-eval score` again."
    )


def test_translations_without_a_record_are_measured_anew(
    command_line: CommandLine, scored_results: Path, scored_run: Path
) -> None:
    path = scored_run / "translations" / "test.xx-aa.txt"
    shutil.copy(scored_results / "data" / "text" / "test.xx-aa.aa", path)
    path.with_suffix(".json").unlink()
    (ours,) = command_line.compared(scored_run, "--task", "xx-aa", "--metric", "chrf")
    assert ours["metrics"][0]["systems"][0]["value"] == 100


def test_a_translation_that_has_lost_lines_is_refused(command_line: CommandLine, tiny_run: Path) -> None:
    command_line.scored(tiny_run, "--max-sentences", "5")
    path = tiny_run / "translations" / "test.xx-aa.txt"
    path.write_bytes(path.read_bytes().partition(b"\n")[2])
    record = path.with_suffix(".json")
    content = json.loads(record.read_text(encoding="utf-8"))
    record.write_text(json.dumps(content | {"sha256": checksum(path)}), encoding="utf-8")
    done = command_line.run("compare", tiny_run, "--task", "xx-aa")
    assert done.status == 2
    assert "must have 5 lines, one for each reference, but has 4." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{run}"], "no task of test set 'test' is translated by every run"),
        (["{run}", "--testset", "nope"], "data: has no test set 'nope'; its test sets are test."),
        (["{run}", "--testset", "nope", "--task", "xx-aa"], "'nope'; its test sets are test."),
        (["{run}", "--task", "xx-aa"], "no translations yet; run `mnmt-eval score"),
        (["{run}", "--task", "xx-zz"], "has no test xx-zz; it has xx-aa, xx-bb."),
        (["{run}", "{results}/data/text/test.xx-aa.aa"], "a plain file is of one task"),
        (["a={results}/runs"], "holds 2 runs, so one name is not enough"),
    ],
)
def test_runs_that_cannot_be_compared_are_told(
    command_line: CommandLine, results: Path, tiny_run: Path, arguments: list[str], message: str
) -> None:
    shutil.copytree(tiny_run, tiny_run.with_name("other"))
    done = command_line.run("compare", *(a.format(run=tiny_run, results=results) for a in arguments))
    assert done.status == 2
    (complaint,) = done.stderr.splitlines()
    assert message in complaint
