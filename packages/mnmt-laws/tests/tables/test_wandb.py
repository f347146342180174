"""Panels that Weights & Biases exports, and tables that describe runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import TableError, observe, read_table

STEPS = np.arange(0, 1000, 100)
SIZES = {"small": 1e6, "big - 2": 6.4e7}


def panel(metric: str = "eval/loss", x: str = "Step") -> pd.DataFrame:
    """A run for each size; the larger one is measured at every other step only."""
    columns = {x: STEPS.astype(float)}
    for number, run in enumerate(SIZES):
        values = 5.0 - number - STEPS / 1000
        values[1 : number * len(STEPS) : 2] = np.nan
        columns |= {f"{run} - {metric}{end}": values for end in ("", "__MIN", "__MAX")}
    return pd.DataFrame(columns)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    pd.DataFrame({"run": SIZES.keys(), "size": SIZES.values()}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("columns", [{}, {"value": "* - eval/loss", "step": "Step"}])
def test_a_panel_is_read_with_a_size_for_each_run(
    tmp_path: Path, runs: Path, columns: dict[str, str]
) -> None:
    panel().to_csv(tmp_path / "wandb.csv", index=False)
    for source in (tmp_path / "wandb.csv", panel()):
        table = read_table(source, columns=columns, runs=runs)
        assert len(table.frame) == len(STEPS) * 3 // 2
        last = observe(table).frame.set_index("run")
        assert last["size"].to_dict() == SIZES
        assert last["step"].to_dict() == {"small": 900, "big - 2": 800}
        assert last["value"].to_dict() == pytest.approx({"small": 4.1, "big - 2": 3.2})
        assert table.warnings == ()


def test_without_sizes_the_message_says_how_to_give_them() -> None:
    message = (
        r"no column `size`.*or give it by a second table, --runs runs.csv, with columns run,size and the runs"
    )
    with pytest.raises(TableError, match=f"{message} small, big - 2"):
        read_table(panel())


def test_a_panel_of_several_metrics_needs_a_choice(runs: Path) -> None:
    both = panel().merge(panel("eval/ppl"), on="Step")
    with pytest.raises(
        TableError, match=r"several metrics \(eval/loss, eval/ppl\); choose one, as in --column"
    ):
        read_table(both, runs=runs)
    ppl = observe(read_table(both, columns={"value": "* - eval/ppl"}, runs=runs))
    loss = observe(read_table(panel(), runs=runs))
    np.testing.assert_allclose(ppl.frame["value"], np.log(loss.frame["value"]))


def test_groups_tokens_and_hidden_steps_are_read(runs: Path) -> None:
    grouped = panel("val_bleu", x="train/tokens").rename(
        columns=lambda name: name.replace("small", "Group: small")
    )
    grouped = grouped.assign(**{"Group: small - _step": STEPS})
    observations = observe(read_table(grouped.assign(**{"train/tokens": STEPS * 1e6}), runs=runs))
    assert (observations.metric, observations.frame["tokens"].max()) == ("bleu", 9e8)
    assert set(observations.frame["run"]) == set(SIZES)


@pytest.mark.parametrize(
    ("axis", "length"),
    [
        ("Step", "step"),
        ("_step", "step"),
        ("trainer/global_step", "step"),
        ("iter", "step"),
        ("train/iterations", "step"),
        ("epoch", "step"),
        ("tokens", "tokens"),
        ("num_input_tokens_seen", "tokens"),
    ],
)
def test_the_axis_is_what_its_name_says(runs: Path, axis: str, length: str) -> None:
    last = observe(read_table(panel(x=axis), runs=runs)).frame
    assert last[length].max() == 900
    assert last[{"step": "tokens", "tokens": "step"}[length]].isna().all()


@pytest.mark.parametrize("axis", ["Relative Time (Process)", "Wall Time", "_runtime", "tokens_per_second"])
def test_another_axis_is_asked_about(runs: Path, axis: str) -> None:
    with pytest.raises(TableError, match="is neither steps nor tokens;") as caught:
        read_table(panel(x=axis), runs=runs)
    assert f'--column "step={axis}"' in str(caught.value)
    assert observe(read_table(panel(x=axis), columns={"step": axis}, runs=runs)).frame["step"].max() == 900


def test_runs_may_have_tokens_and_factors(tmp_path: Path) -> None:
    described = pd.DataFrame({"run": SIZES.keys(), "size": [1, 64], "tokens": [2e7, 1.3e9]})
    described.to_csv(tmp_path / "runs.csv", index=False)
    table = read_table(panel(), columns={"size": "size*1e6"}, runs=tmp_path / "runs.csv")
    last = observe(table).frame.set_index("run")
    assert last["size"].to_dict() == SIZES
    assert last["tokens"].to_dict() == {"small": 2e7, "big - 2": 1.3e9}


def test_two_runs_of_one_name_are_refused(tmp_path: Path, runs: Path) -> None:
    both = panel().set_axis([name.replace("big - 2", "small") for name in panel()], axis="columns")
    both.to_csv(tmp_path / "wandb.csv", index=False)
    for source in (tmp_path / "wandb.csv", both):
        with pytest.raises(TableError, match="row 1: 2 columns are called `small - eval/loss`"):
            read_table(source, runs=runs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,size\nsmall,1e6\n", "run big - 2 is not in .*runs.csv, which has small"),
        ("run,size\nsmall,1e6\nsmall,2e6\n", "row 3: run must name each row once, but small occurs again"),
        ("name,size\nsmall,1e6\n", "row 1: no column is in table as well, so nothing says which rows belong"),
    ],
)
def test_mistakes_in_tables_of_runs_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "runs.csv").write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match=message):
        read_table(panel(), runs=tmp_path / "runs.csv")


def test_any_table_may_have_its_runs_described(runs: Path) -> None:
    table = pd.DataFrame({"run": [*SIZES], "task": "a", "value": [3.0, 2.0], "weight": 1.0})
    assert read_table(table, runs=runs).frame["size"].tolist() == list(SIZES.values())
    with pytest.raises(TableError, match="no column is in table as well"):
        read_table(table.drop(columns="run"), runs=runs)


def test_a_panel_with_a_metric_for_each_language_is_gathered(tmp_path: Path, runs: Path) -> None:
    both = panel("eval/loss_de").merge(panel("eval/loss_fr"), on="Step")
    with pytest.raises(TableError, match=re.escape('as in --column "value=* - eval/loss_*".')):
        read_table(both, runs=runs)
    described = pd.read_csv(runs).assign(mixture="de:0.3,fr:0.7")
    described.to_csv(tmp_path / "mixed.csv", index=False)
    columns = {"value": "* - eval/loss_*"}
    table = read_table(both, columns=columns, runs=tmp_path / "mixed.csv").frame
    one = read_table(panel(), runs=runs).frame
    for task, weight in {"de": 0.3, "fr": 0.7}.items():
        assert table.loc[table["task"] == task, "weight"].eq(weight).all()
        rows = table[table["task"] == task].sort_values(["run", "step"])
        assert rows["value"].tolist() == one.sort_values(["run", "step"])["value"].tolist()


def test_a_task_that_no_mixture_names_is_refused() -> None:
    table = pd.DataFrame({"size": [1e6, 2e6], "mixture": "de:0.3,fr:0.7", "value": [3.0, 2.0]})
    with pytest.raises(TableError, match="task `all` is not in the mixture of de, fr; name the tasks"):
        read_table(table)
