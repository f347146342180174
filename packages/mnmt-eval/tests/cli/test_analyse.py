from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from mnmt_model.runs import Eval, append_evals


def add_evals(
    run: Path,
    values: Mapping[str, Mapping[str, float]],
    *,
    step: int = 40,
    flops: int = 100,
    signature: str = "",
) -> None:
    """Give a run {metric: {task: value}}."""
    append_evals(
        run,
        [
            Eval(
                step=step,
                tokens=1,
                flops=flops,
                task=task,
                testset="test",
                metric=name,
                value=value,
                signature=signature,
            )
            for name, by_task in values.items()
            for task, value in by_task.items()
        ],
    )


def copied(run: Path, name: str, **record: object) -> Path:
    folder = Path(shutil.copytree(run, run.with_name(name)))
    (folder / "evals.jsonl").unlink()
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"run": name} | record))
    return folder


@pytest.fixture
def study(results: Path, tiny_run: Path) -> Path:
    """Three runs of two tasks, and of each task a bilingual one."""
    tasks = {"xx-aa": 0.5, "xx-bb": 0.5}
    for name, value, flops in (("small", 20.0, 100), ("middle", 30.0, 200), ("large", 40.0, 400)):
        run = copied(tiny_run, name, mixture=tasks)
        bleu = {"xx-aa": value, "xx-bb": value - 9}
        add_evals(run, {"bleu": {"xx-aa": -1.0, "xx-bb": -1.0}}, flops=flops)  # replaced by what follows
        add_evals(run, {"bleu": bleu}, flops=flops)
    for task, value in (("xx-aa", 28.0), ("xx-bb", 30.0)):
        add_evals(copied(tiny_run, f"only-{task}", mixture={task: 1.0}), {"bleu": {task: value}})
    return results / "runs"


def analysed(command_line: CommandLine, *arguments: str | Path) -> dict[str, Any]:
    done = command_line.run("analyse", *arguments, "--json")
    assert done.status == 0, done.stderr
    analyses: dict[str, Any] = json.loads(done.stdout)
    return analyses


def test_the_analyses_are_of_the_runs_newest_measurements(command_line: CommandLine, study: Path) -> None:
    runs = [study / name for name in ("small", "middle", "large")]
    baselines = [study / "only-xx-aa", study / "only-xx-bb"]
    result = analysed(
        command_line, *runs, "--baseline", baselines[0], "--baseline", baselines[1], "--low", "2000"
    )
    small = result["runs"][0]
    assert small["values"] == {"xx-aa": 20.0, "xx-bb": 11.0}
    assert [(s["group"], s["value"]) for s in small["resources"]] == [("Low", 15.5), ("All", 15.5)]
    assert [(t["task"], t["difference"]) for t in small["transfer"]] == [("xx-aa", -8.0), ("xx-bb", -19.0)]
    assert small["resources_by_direction"] == {"XX→YY": small["resources"]}
    assert small["transfer_by_resource"][-1]["value"] == -13.5
    assert [(row["name"], row["difference"], row["cost"], row["efficient"]) for row in result["cost"]] == [
        ("small", -13.5, 100.0, True),
        ("middle", -3.5, 200.0, True),
        ("large", 6.5, 400.0, True),
    ]


def test_what_was_not_measured_in_one_way_is_told(command_line: CommandLine, study: Path) -> None:
    other = copied(study / "small", "other", mixture={"xx-aa": 1.0})
    append_evals(
        other,
        [
            Eval(
                step=40,
                tokens=1,
                flops=100,
                task="xx-aa",
                testset="test",
                metric="bleu",
                value=30.0,
                signature="beam:1",
            )
        ],
    )
    arguments = (study / "small", other)
    assert analysed(command_line, study / "small")["differing"] == []
    analyses = analysed(command_line, *arguments)
    assert analyses["differing"] == ["xx-aa"]
    assert analyses["signatures"] == {"xx-aa": {"": ["small"], "beam:1": ["other"]}, "xx-bb": {"": ["small"]}}
    first, *_, last = command_line.run("analyse", *arguments).stdout.decode().split("\n\n")
    assert first.startswith("xx-aa: measured in different ways, so not comparable; score all runs with")
    assert last.splitlines() == ["small on xx-aa: ", "other on xx-aa: beam:1", "xx-bb: "]


@pytest.mark.parametrize(("compute", "differing"), [("float32", []), ("int8", ["xx-aa"])])
def test_an_engine_that_finds_the_same_is_no_other_way_of_measuring(
    command_line: CommandLine, study: Path, compute: str, differing: list[str]
) -> None:
    for engine in ("", f"|engine:ctranslate2-4.8.5-{compute}"):
        run = copied(study / "small", f"by{len(engine)}", mixture={"xx-aa": 1.0})
        add_evals(run, {"bleu": {"xx-aa": 30.0}}, signature=f"beam:4{engine}|maxsrc:8")
    runs = [study / "by0", *study.glob("by[1-9]*")]
    assert analysed(command_line, *runs)["differing"] == differing


def test_the_search_and_the_sentences_are_below_the_tables(
    command_line: CommandLine, scored_run: Path
) -> None:
    *_, last = command_line.run("analyse", scored_run).stdout.decode().split("\n\n")
    assert all(f"|{part}" in last for part in ("beam:4|", "sentences:all"))
    assert last.startswith("xx-aa, xx-bb: nrefs:1|")


def test_tasks_a_run_was_not_trained_on_are_zero_shot(command_line: CommandLine, study: Path) -> None:
    add_evals(study / "only-xx-aa", {"bleu": {"xx-bb": 4.0}, "language": {"xx-bb": 60.0}})
    result = analysed(command_line, study / "only-xx-aa")
    zero_shot = result["runs"][0]["zero_shot"]
    assert zero_shot["directions"] == [{"task": "xx-bb", "value": 4.0, "language_accuracy": 60.0}]
    assert [s["tasks"] for s in result["runs"][0]["resources"]] == [["xx-aa"], ["xx-aa"]]


def test_the_tables_show_what_there_is(command_line: CommandLine, study: Path) -> None:
    add_evals(study / "only-xx-aa", {"bleu": {"xx-bb": 4.0}})
    done = command_line.run(
        "analyse", study, "--baseline", study / "only-xx-aa", "--baseline", study / "only-xx-bb"
    )
    assert done.status == 2  # tiny-run, which has no bleu, is in the folder too
    shutil.rmtree(study / "tiny-run")
    runs = [study / name for name in ("small", "middle", "large", "only-xx-aa")]
    done = command_line.run("analyse", *runs, "--baseline", study / "only-xx-aa")
    printed = done.stdout.decode()
    heads = [paragraph.split("\n")[0].split(":")[0] for paragraph in printed.split("\n\n")]
    assert heads[0] == "bleu on test, means over tasks by training pairs (number of tasks)"
    assert "zero-shot" in heads
    assert "not measured" in printed
    assert "* no other run is as good for less flops" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{runs}/small", "--metric", "comet"], "small: has no comet on test; it has bleu on test; run"),
        (["{runs}/small", "--testset", "news"], "small: has no bleu on news; it has bleu on test; run"),
        (["{runs}/small", "--high", "5", "--low", "6"], "`--high` must be at least `--low` (6), but is 5."),
        (
            ["{runs}/small", "--baseline", "{runs}/middle", "--baseline", "{runs}/large"],
            "xx-aa has two baselines, middle and large; name one.",
        ),
        (["{runs}/only-xx-aa", "--baseline", "{runs}/only-xx-bb"], "have no task in common"),
        (["{runs}/small/run.json"], "run.json: is no run; name a folder that holds run.json, or"),
    ],
)
def test_what_cannot_be_analysed_is_one_line(
    command_line: CommandLine, study: Path, arguments: list[str], message: str
) -> None:
    done = command_line.run("analyse", *(a.format(runs=study) for a in arguments))
    assert done.status == 2
    (complaint,) = done.stderr.splitlines()
    assert message in complaint
