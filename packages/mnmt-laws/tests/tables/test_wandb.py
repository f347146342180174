"""Panels that Weights & Biases exports, and tables that describe runs."""

from __future__ import annotations

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
        r"no column `size`; give one, or a second.* --runs runs.csv, with the columns run,size and the runs"
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


def test_an_unknown_metric_of_a_panel_is_asked_about(runs: Path) -> None:
    with pytest.raises(TableError, match="nothing tells which way `eval/reward` goes"):
        observe(read_table(panel("eval/reward"), runs=runs))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,size\nsmall,1e6\n", "run big - 2 is not in the table of runs, which has small"),
        ("run,size\nsmall,1e6\nsmall,2e6\n", "must have a column `run` that names each run once"),
        ("name,size\nsmall,1e6\n", "must have a column `run` that names each run once"),
    ],
)
def test_mistakes_in_tables_of_runs_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "runs.csv").write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match=message):
        read_table(panel(), runs=tmp_path / "runs.csv")


def test_any_table_may_have_its_runs_described(runs: Path) -> None:
    table = pd.DataFrame({"run": [*SIZES], "task": "a", "value": [3.0, 2.0], "weight": 1.0})
    assert read_table(table, runs=runs).frame["size"].tolist() == list(SIZES.values())
    with pytest.raises(TableError, match="no column `run`, by which a table of runs is read"):
        read_table(table.drop(columns="run"), runs=runs)
