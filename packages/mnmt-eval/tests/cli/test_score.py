from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine

from mnmt_data.store import checksum
from mnmt_data.store.description import FileInfo, PreparedDescription
from mnmt_data.store.shards import write_loss_weights
from mnmt_eval.cli import score_jobs
from mnmt_eval.cli.score_jobs import default_jobs
from mnmt_eval.metrics import metric
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.runs import read_evals

Lines = list[str]


def set_status(folder: Path, status: str) -> None:
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps(record | {"status": status}), encoding="utf-8")


def lines_of(path: Path) -> Lines:
    return path.read_text(encoding="utf-8").splitlines()


def test_score_appends_the_metrics_of_every_task_and_keeps_the_translations(
    command_line: CommandLine, results: Path, tiny_run: Path
) -> None:
    before = read_evals(tiny_run)
    rows = command_line.scored(results / "runs")
    assert [(row["task"], row["testset"], row["metric"]) for row in rows] == [
        ("xx-aa", "test", "bleu"),
        ("xx-aa", "test", "chrf"),
        ("xx-bb", "test", "bleu"),
        ("xx-bb", "test", "chrf"),
    ]
    new = read_evals(tiny_run)[len(before) :]
    assert [vars(each) | {"run": "tiny-run"} for each in new] == rows
    for each in new:
        hypotheses = lines_of(tiny_run / "translations" / f"test.{each.task}.txt")
        references = lines_of(results / "data" / "text" / f"test.{each.task}.{each.task[3:]}")
        score = metric(each.metric, target=each.task[3:]).score(hypotheses, [references])
        assert each.value == score.value
        assert (
            each.signature
            == f"{score.signature}|beam:4|lp:power-0.6|stop:filled|maxlen:2x+20|maxsrc:8|sentences:all"
        )
        assert (each.step, each.tokens, each.flops) == (40, before[-1].tokens, before[-1].flops)


def test_pairs_of_an_exact_test_set_count_as_often_as_their_weights_say(
    command_line: CommandLine, results: Path, tiny_run: Path
) -> None:
    shards, rng = results / "data" / "shards", np.random.default_rng(1)
    counts = {}
    for task in ("xx-aa", "xx-bb"):
        pairs = len(lines_of(results / "data" / "text" / f"test.{task}.xx"))
        counts[task] = rng.integers(1, 5, pairs)
        write_loss_weights(shards / f"test.{task}", counts[task] / counts[task].sum())
    rows = command_line.scored(tiny_run)
    assert len(rows) == 4
    for row in rows:
        task = row["task"]
        hypotheses = lines_of(tiny_run / "translations" / f"test.{task}.txt")
        references = lines_of(results / "data" / "text" / f"test.{task}.{task[3:]}")
        repeated = [np.repeat(lines, counts[task]).tolist() for lines in (hypotheses, references)]
        score = metric(row["metric"], target=task[3:]).score(repeated[0], [repeated[1]])
        assert row["value"] == pytest.approx(score.value, rel=1e-5)  # weights are float32


def test_by_default_runs_are_scored_side_by_side_only_if_that_takes_all_cores(
    results: Path, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three", "unfinished")]
    for folder in folders:
        shutil.copytree(tiny_run, folder)
    set_status(folders[-1], "running")
    size = find_checkpoints(tiny_run / "checkpoints")[-1].joinpath("model.safetensors").stat().st_size
    for cores, memory, jobs in [
        (1, 10 * size, 1),
        (2, 10 * size, 2),
        (3, 10 * size, 3),
        (4, 10 * size, 1),
        (16, 10 * size, 1),
        (3, 2 * size, 1),
        (2, 2 * size, 2),
        (2, size // 2, 1),
    ]:
        monkeypatch.setattr(score_jobs, "num_cores", lambda cores=cores: cores)
        monkeypatch.setattr(score_jobs, "MEMORY", memory)
        assert default_jobs(folders, ("cpu",)) == jobs


def test_what_is_measured_is_not_measured_again(command_line: CommandLine, scored_run: Path) -> None:
    files = {path: path.read_bytes() for path in scored_run.rglob("*.*") if path.is_file()}
    rows = command_line.scored(scored_run)
    assert {path: path.read_bytes() for path in scored_run.rglob("*.*") if path.is_file()} == files
    translations = scored_run / "translations"
    shutil.rmtree(translations)
    assert command_line.scored(scored_run) == rows
    assert [vars(each) | {"run": "tiny-run"} for each in read_evals(scored_run)[-4:]] == rows
    assert (scored_run / "evals.jsonl").read_bytes() == files[scored_run / "evals.jsonl"]
    assert not translations.exists()


def test_an_interrupted_score_goes_on_where_it_was(command_line: CommandLine, scored_run: Path) -> None:
    complete = read_evals(scored_run)
    path = scored_run / "evals.jsonl"
    rest = path.read_text(encoding="utf-8").splitlines(keepends=True)[:-2]
    path.write_text("".join(rest), encoding="utf-8")
    shutil.rmtree(scored_run / "translations")
    (scored_run / "scores" / "test.xx-bb.bleu.npz").unlink()
    command_line.scored(scored_run)
    assert read_evals(scored_run) == complete
    assert [p.name for p in (scored_run / "translations").glob("*.txt")] == ["test.xx-bb.txt"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--max-sentences", "5"], "|stop:filled|maxlen:2x+20|maxsrc:8|sentences:5"),
        (["--beam", "3"], "|beam:3|lp:power-0.6|stop:filled|maxlen:2x+20|maxsrc:8|sentences:all"),
        (["--beam", "1", "--max-length", "2x+1"], "|beam:1|maxlen:2x+1|maxsrc:8|sentences:all"),
        (["--early-stopping", "exact"], "|stop:exact|maxlen:2x+20|maxsrc:8|sentences:all"),
    ],
)
def test_other_options_measure_anew(
    command_line: CommandLine, scored_run: Path, options: list[str], part: str
) -> None:
    before = len(read_evals(scored_run))
    rows = command_line.scored(scored_run, *options)
    assert all(str(row["signature"]).endswith(part) for row in rows)
    assert len(read_evals(scored_run)) == before + len(rows) == before + 4


def test_runs_that_have_not_finished_are_skipped(
    command_line: CommandLine, results: Path, tiny_run: Path
) -> None:
    for status in ("running", "failed"):
        set_status(Path(shutil.copytree(tiny_run, tiny_run.with_name(status))), status)
    before = (tiny_run.with_name("failed") / "evals.jsonl").read_bytes()
    done = command_line.run("score", results / "runs", "--metric", "bleu", "--testset", "test")
    assert done.status == 0
    assert done.stdout.decode() == "scored: 2 metrics computed, 0 there before\n"
    told = done.stderr.splitlines()
    assert told[:2] == ["[1/3] failed skipped: is failed", "[2/3] running skipped: is running"]
    assert [line.partition(":")[0] for line in told[2:]] == [
        "[3/3] tiny-run test xx-aa",
        "[3/3] tiny-run test xx-bb",
    ]
    assert (tiny_run.with_name("failed") / "evals.jsonl").read_bytes() == before


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_cannot_be_scored_ends_the_command_but_loses_nothing(
    command_line: CommandLine, results: Path, tiny_run: Path, jobs: int
) -> None:
    broken = Path(shutil.copytree(tiny_run, tiny_run.with_name("without-checkpoint")))
    shutil.rmtree(broken / "checkpoints")
    done = command_line.run("score", results / "runs", "--jobs", str(jobs))
    assert done.status == 2
    assert "holds no checkpoint" in done.stderr.splitlines()[-1]
    assert done.stderr.startswith("[1/2] tiny-run test xx-aa: bleu")
    assert [each.metric for each in read_evals(tiny_run)][-4:] == ["bleu", "chrf"] * 2


def describe_again(data: Path, name: str) -> None:
    """Lets prepared.json describe a file as it is now, so that no change is what is found wrong."""
    description = PreparedDescription.read(data)
    file = FileInfo(bytes=(data / name).stat().st_size, sha256=checksum(data / name))
    replace(description, files={**description.files, name: file}).write(data)


def unequal(results: Path) -> None:
    path = results / "data" / "text" / "test.xx-aa.aa"
    path.write_text("one\n", encoding="utf-8")
    describe_again(results / "data", "text/test.xx-aa.aa")


def without_references(results: Path) -> None:
    (results / "data" / "text" / "test.xx-aa.aa").unlink()


def without_data(results: Path) -> None:
    shutil.rmtree(results / "data")


def without_checkpoint(results: Path) -> None:
    shutil.rmtree(results / "runs" / "tiny-run" / "checkpoints")


def with_another_vocabulary(results: Path) -> None:
    from mnmt_data.store import train_vocabulary

    path = results / "data" / "vocab.model"
    train_vocabulary(["p q r s"] * 9, path, kind="word", size=10, languages=["aa", "bb"])
    describe_again(results / "data", "vocab.model")


def unchanged(results: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (unchanged, ["score", "{results}/nothing"], "nothing: no run here"),
        (unchanged, ["score"], "RUNS is missing; see --help."),
        (unchanged, ["score", "{runs}", "--metric", "bleu,rouge"], "but has 'rouge'."),
        (unchanged, ["score", "{runs}", "--testset", "news"], "no test set 'news'; its test sets are test."),
        (unchanged, ["score", "{runs}", "--beam", "0"], "`--beam` must be at least 1, but is 0."),
        (
            unchanged,
            ["score", "{runs}", "--max-sentences", "0"],
            "`--max-sentences` must be at least 1, but is 0.",
        ),
        (unchanged, ["score", "{runs}", "--jobs", "0"], '"0" for --jobs. Must be >= 1.'),
        (
            unchanged,
            ["score", "{runs}", "--beam", "1000000"],
            "`--beam` must be at most 10,000",
        ),
        (
            unchanged,
            ["score", "{runs}", "--length-penalty", "log-1"],
            "`--length-penalty` must be power-ALPHA or gnmt-ALPHA, but is 'log-1'.",
        ),
        (unchanged, ["score", "{runs}", "--max-length", "9"], "`--max-length` must be RATIOx+EXTRA"),
        (unchanged, ["score", "{runs}", "--beams", "2"], "--beams"),
        (without_references, ["score", "{runs}"], "test.xx-aa.aa: no such file"),
        (unequal, ["score", "{runs}"], "test.xx-aa.aa has 1"),
        (without_data, ["score", "{runs}"], "run.json: its data should be at ../../data from there, and"),
        (without_checkpoint, ["score", "{runs}"], "holds no checkpoint; name the folder of a trained run"),
        (with_another_vocabulary, ["score", "{runs}"], "was trained with another vocabulary than that of"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    command_line: CommandLine,
    results: Path,
    change: Callable[[Path], None],
    arguments: list[str],
    message: str,
) -> None:
    change(results)
    done = command_line.run(*(a.format(results=results, runs=results / "runs") for a in arguments))
    *progress, complaint = done.stderr.splitlines()
    assert done.status == 2
    assert progress == []
    assert complaint.startswith("mnmt-eval: ")
    assert message in complaint
