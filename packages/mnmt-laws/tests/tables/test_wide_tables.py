"""Tables with a column for each source's weight and each task's value."""

from __future__ import annotations

from pathlib import Path

import pytest

from mnmt_laws import TableError, observe, read_table


def write(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        (".4,.5", "the columns `share_*` sum to 0.9, not 1"),
        ("30,70", "the columns `share_*` sum to 100, not 1"),
        (",.5", "`share_a` is empty"),
    ],
)
def test_the_row_is_named_whose_weights_are_no_mixture(tmp_path: Path, fields: str, wrong: str) -> None:
    text = f"size,share_a,share_b,loss_a,loss_b\n1,.5,.5,2,3\n2,.3,.7,2,3\n3,{fields},2,3\n"
    path = write(tmp_path, text)
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert str(caught.value) == f"{path} row 4: {wrong}; give the weight of every source of the mixture."


def test_columns_named_like_the_tasks_may_hold_something_else(tmp_path: Path) -> None:
    text = "size,loss_a,loss_b,hours_a,hours_b\n1,2,3,5,10\n2,2,3,6,11\n3,2,3,7,12\n"
    assert observe(write(tmp_path, text), columns={"value": "loss_*"}).tasks == ["a", "b"]


def test_perplexities_of_each_task_are_gathered(tmp_path: Path) -> None:
    text = "size,share_a,share_b,ppl_a,ppl_b\n1,.5,.5,20,30\n2,.3,.7,21,31\n3,.7,.3,22,32\n"
    table = read_table(write(tmp_path, text))
    assert table.warnings[0].endswith("value from `ppl_*` (2 columns).")
    assert table.frame["task"].tolist() == ["a", "b"] * 3
