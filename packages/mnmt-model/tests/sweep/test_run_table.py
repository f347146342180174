"""Studies that grow from a run table: what it holds is not trained again, and another run is refused."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mnmt_data.store import open_prepared
from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, count_parameters, run_configs
from mnmt_model.runs.run_config import config_fingerprint
from mnmt_model.sweep.run_table import runs_left


@pytest.fixture(scope="module")
def study(study_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny study with a horizon of 8 steps before that of 12."""
    path = tmp_path_factory.mktemp("horizons") / "horizons.toml"
    text = study_file.read_text(encoding="utf-8")
    path.write_text(text.replace("steps = 12", "horizons = [8, 12]\ncooldown_steps = 6"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def runs(study: Path, results: Path) -> list[RunConfig]:
    """Its runs: five trunks, each with a branch after it."""
    return run_configs(read_study(study), results / "data")


def rows(run: RunConfig, **changes: Any) -> list[dict[str, Any]]:
    """Return the rows of a finished run, as `mnmt-laws collect` writes them."""
    row = {
        "run": run.name,
        "size": float(count_parameters(run.model, 1).size),
        "mixture": ",".join(f"{task}:{weight}" for task, weight in run.mixture.items()),
        "metric": "loss",
        "step": run.train.steps,
        "seed": run.seed,
        "cooldown_start": run.train.steps - run.train.cooldown_steps,
        "study": run.study,
        "data_fingerprint": open_prepared(run.data).fingerprint[:12],
        "config_fingerprint": config_fingerprint(run)[:12],
        "value": 2.5,
    }
    cells = [(task, testset) for task in ("xx-aa", "xx-bb") for testset in ("dev", "test")]
    return [row | {"task": task, "testset": testset} | changes for task, testset in cells]


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(lines[0]))
        table.writeheader()
        table.writerows(lines)
    return path


def names(runs: list[RunConfig]) -> list[str]:
    return [run.name for run in runs]


def test_runs_that_tables_have_are_left_out(runs: list[RunConfig], tmp_path: Path) -> None:
    first = write(tmp_path / "first.csv", [*rows(runs[0]), *rows(runs[1])])
    second = write(tmp_path / "second.csv", [row for run in runs[2:] for row in rows(run)])
    assert runs_left(runs, []) == runs
    assert runs_left(runs, [first]) == runs[2:]
    assert runs_left(runs, [first, second]) == []


def test_a_trunk_is_trained_again_for_its_branch_and_for_that_alone(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    trunk, branch, *rest = runs
    others = [row for run in rest for row in rows(run)]
    assert runs_left(runs, [write(tmp_path / "trunk.csv", [*rows(trunk), *others])]) == [trunk, branch]
    assert runs_left(runs, [write(tmp_path / "branch.csv", [*rows(branch), *others])]) == [trunk]


@pytest.mark.parametrize(
    "changes", [{"metric": "chrf"}, {"step": 4}, {"testset": "dev"}, {"task": "xx-aa"}, {"study": "another"}]
)
def test_a_run_without_all_its_test_losses_is_trained(
    runs: list[RunConfig], tmp_path: Path, changes: dict[str, Any]
) -> None:
    table = write(tmp_path / "runs.csv", rows(runs[0], **changes))
    assert names(runs_left(runs, [table])) == names(runs)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("size", "77.0", "has the size 77.0, but in the study 6384"),
        ("seed", "2", "has the seed 2, but in the study 1"),
        (
            "mixture",
            "xx-aa:0.5,xx-bb:0.5",
            "has the mixture xx-aa:0.5,xx-bb:0.5, but in the study xx-aa:1.0",
        ),
        ("cooldown_start", "8", "has the cooldown_start 8, but in the study 4"),
        (
            "data_fingerprint",
            "0123456789ab",
            r"was trained on data of other text or another \[data\] section than the study's",
        ),
        (
            "config_fingerprint",
            "0123456789ab",
            r"was trained with another \[model\] or \[train\] section than the study's",
        ),
    ],
)
def test_a_table_of_another_run_is_refused_in_one_line(
    runs: list[RunConfig], tmp_path: Path, column: str, cell: str, message: str
) -> None:
    table = write(tmp_path / "runs.csv", [*rows(runs[0]), *rows(runs[1], **{column: cell})])
    message = rf"runs\.csv row 6: {runs[1].name} {message}: they are two runs; give the study another name"
    with pytest.raises(RunError, match=message) as error:
        runs_left(runs, [table])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"run,size\na,1\n", r"runs\.csv row 1: no column `mixture`; give a CSV table"),
        (b"\xff\xfe\x00", r"runs\.csv: not CSV in UTF-8; give a CSV table"),
    ],
)
def test_a_file_that_is_no_run_table_is_refused(
    runs: list[RunConfig], tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(content)
    with pytest.raises(RunError, match=message):
        runs_left(runs, [path])


def test_the_fingerprint_is_of_what_is_learned(runs: list[RunConfig]) -> None:
    run = runs[0]
    same = (
        replace(run, train=replace(run.train, log_every=7, eval_every=9, horizons=(6, 12))),
        replace(run, seed=8, mixture={"xx-bb": 1.0}),
    )
    other = (
        replace(run, train=replace(run.train, learning_rate=0.02)),
        replace(run, train=replace(run.train, early_stopping=3, horizons=())),
        replace(run, model=replace(run.model, d_ff=8)),
    )
    assert {config_fingerprint(each) for each in (run, *same)} == {config_fingerprint(run)}
    assert len({config_fingerprint(each) for each in (run, *other)}) == 4


def test_plan_and_sweep_leave_out_what_a_table_has(
    command: Callable[..., Any], study: Path, runs: list[RunConfig], results: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").symlink_to(results / "data")
    some = write(tmp_path / "some.csv", [row for run in runs[4:] for row in rows(run)])
    rest = write(tmp_path / "rest.csv", [row for run in runs[:4] for row in rows(run)])
    planned = command("plan", study, "-o", tmp_path, "--have", some, "--no-measure", "--json")
    assert [run["name"] for run in json.loads(planned.stdout)["runs"]] == names(runs[:4])
    assert planned.stderr == f"6 of 10 runs are left out: see {some}\n"
    nothing = ("-o", tmp_path, "--have", some, "--have", rest)
    assert "0 runs" in command("plan", study, *nothing).stdout
    swept = command("sweep", study, *nothing)
    assert (swept.status, swept.stderr) == (0, f"10 of 10 runs are left out: see {some}, {rest}\n")
    assert swept.stdout == f"0 of 0 runs finished in {tmp_path / 'runs'}\n"
