"""From a study file to a report through the four commands, and with a sweep that is stopped twice."""

import csv
import html
import json
from pathlib import Path

import pytest

TASKS = ("xx-aa", "xx-bb")
STEPS = 60
NUM_RUNS = 13


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_interrupted_sweep_says_so_in_one_line(stopped):
    assert stopped.interrupted.returncode == 130
    last = stopped.interrupted.stderr.splitlines()[-1]
    assert last == "mnmt-model: interrupted by SIGINT; the same command continues from there"
    assert "Traceback" not in stopped.interrupted.stderr


@pytest.mark.slow
def test_resumed_sweep_finishes_every_run(stopped):
    assert stopped.resumed.returncode == 0, stopped.resumed.stderr
    records = [json.loads((run / "run.json").read_text(encoding="utf-8")) for run in stopped.runs]
    assert [record["status"] for record in records] == ["finished"] * NUM_RUNS
    assert sorted({record["role"] for record in records}) == ["fit", "held-out"]


@pytest.mark.slow
def test_some_runs_but_not_all_were_finished_when_the_sweep_was_killed(stopped):
    assert 0 < len([path for path in stopped.before if path.endswith("run.json")]) < NUM_RUNS


@pytest.mark.slow
def test_finished_runs_are_not_trained_again(stopped):
    for path, content in stopped.before.items():
        assert Path(path).read_bytes() == content
    assert stopped.repeated.returncode == 0


@pytest.mark.slow
def test_no_step_is_recorded_twice(stopped):
    for run in stopped.runs:
        assert [line["step"] for line in lines(run / "metrics.jsonl")] == list(range(10, STEPS + 1, 10))


def test_every_run_measures_loss_bleu_and_chrf_of_every_task(study):
    for run in study.runs:
        last = [row for row in lines(run / "evals.jsonl") if row["step"] == STEPS]
        measured = {(row["task"], row["testset"], row["metric"]) for row in last}
        assert measured >= {(task, "test", metric) for task in TASKS for metric in ("loss", "bleu", "chrf")}


def test_bleu_is_a_percentage_with_its_signature(study):
    rows = [row for run in study.runs for row in lines(run / "evals.jsonl") if row["metric"] == "bleu"]
    assert all(0 <= row["value"] <= 100 for row in rows)
    assert all("version:" in row["signature"] for row in rows)


def test_models_of_a_task_alone_translate_it_better_than_the_other(study):
    alone = {"xx-aa": "d16_xx-aa-1_seed1", "xx-bb": "d16_xx-bb-1_seed1"}
    for task, run in alone.items():
        loss = {
            row["task"]: row["value"]
            for row in lines(study.results / "runs" / run / "evals.jsonl")
            if row["metric"] == "loss" and row["testset"] == "test"
        }
        assert loss[task] == min(loss.values())


def test_report_command_says_where_the_report_is_and_what_it_found(study):
    assert study.report.returncode == 0, study.report.stderr
    advice, *quality, where = study.report.stdout.splitlines()
    page = html.unescape((study.results / "report" / "index.html").read_text(encoding="utf-8"))
    assert advice.partition(". ")[0] in page
    assert all(line in page for line in quality)
    assert Path(where) == study.results / "report" / "index.html"


def test_page_and_json_agree(study):
    page = html.unescape((study.results / "report/index.html").read_text(encoding="utf-8"))
    document = json.loads((study.results / "report/report.json").read_text(encoding="utf-8"))
    assert document["study"] == "tiny"
    assert document["findings"]
    assert [finding for finding in document["findings"] if finding not in page] == []


def test_report_lists_every_run_and_predicts_the_held_out_one(study):
    document = json.loads((study.results / "report/report.json").read_text(encoding="utf-8"))
    assert sorted(run["run"] for run in document["runs"]) == [run.name for run in study.runs]
    assert {run["status"] for run in document["runs"]} == {"finished"}
    assert document["held_out"]["count"] > 0


def test_run_table_holds_every_measurement(study):
    with (study.results / "report/runs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for run in study.runs:
        tabulated = [float(row["value"]) for row in rows if row["run"] == run.name]
        assert sorted(tabulated) == pytest.approx(sorted(row["value"] for row in lines(run / "evals.jsonl")))
