"""Reading run tables: what is accepted, and what each mistake says."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mnmt_laws import TableError, read_table, select

HEADER = "size,task,weight,metric,value"


def write(folder: Path, text: str, name: str = "runs.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; a run table needs a header"),
        (HEADER + "\n", "has a header but no rows"),
        ("size;task;weight;metric;value\n1;a;1;loss;2\n", "row 1: fields are separated by semicolons"),
        ("size\ttask\tweight\tmetric\tvalue\n", "row 1: fields are separated by tabs"),
        ("size,task,weigth,metric,value\n1,a,1,loss,2\n", r"no column `weight` \(is `weigth` meant\?\)"),
        (f"{HEADER}\n1,a,1,loss,2\n2,a,1,loss\n", "row 3: 4 fields, but the header has 5"),
        (f"{HEADER}\n1,a,1,loss,2\n2,a,1,loss,nan\n", "row 3: `value` is NaN; leave the row out"),
        (f"{HEADER}\n1,a,1,loss,\n", "row 2: `value` is empty or NaN"),
        (f"{HEADER}\n1,a,1,loss,inf\n", "row 2: `value` must be finite, but is 'inf'"),
        (f'{HEADER}\n1,a,1,loss,"2,5"\n', "row 2: `value` must be a number, but is '2,5'"),
        (f"{HEADER}\n1,a,1,loss,-0.5\n", "row 2: a loss must be above 0 nats per token, but is -0.5"),
        (f"{HEADER}\n0,a,1,loss,2\n", "row 2: `size` must be above 0 parameters, but is 0"),
        (f"{HEADER}\n-3,a,1,loss,2\n", "row 2: `size` must be above 0 parameters, but is -3"),
        (f"{HEADER}\n1,a,1.5,loss,2\n", r"row 2: `weight` must be in \[0, 1\], but is 1.5"),
        (f"{HEADER}\n1,a,-0.1,loss,2\n", r"row 2: `weight` must be in \[0, 1\], but is -0.1"),
        (f"{HEADER}\n1,,1,loss,2\n", "row 2: `task` is empty"),
        (f"{HEADER}\n1,a,1,loss,2\n\n1,a,1,loss,3\n", "rows 2 and 4: the same measurement twice"),
        (f"{HEADER},role\n1,a,1,loss,2,test\n", "row 2: `role` must be fit or held-out, but is 'test'"),
        (f"{HEADER},irreducible\n1,a,1,loss,2,-1\n", "row 2: `irreducible` must not be negative"),
        (
            f'{HEADER},mixture\n1,a,0.4,loss,2,"a:0.3,b:0.7"\n',
            "row 2: `weight` of a is 0.4, but `mixture` gives it 0.3; they must agree",
        ),
        (f'{HEADER},mixture\n1,a,0.3,loss,2,"a:0.3,b:0.6"\n', "must sum to 1, but 'a:0.3,b:0.6' sums to 0.9"),
        (f"{HEADER},mixture\n1,a,0.3,loss,2,a=0.3\n", "`mixture` must read TASK:WEIGHT,TASK:WEIGHT"),
    ],
)
def test_mistakes_are_named_with_file_and_row(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(TableError, match=message) as caught:
        read_table(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv", "no such file"),
        ("runs.txt", "must be a .csv or .parquet file"),
        ("bad.parquet", "not a Parquet"),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, name: str, message: str) -> None:
    for existing in ("runs.txt", "bad.parquet"):
        write(tmp_path, "not a table", existing)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / name)


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_bytes(HEADER.encode() + b"\n1,\xff,1,loss,2\n")
    with pytest.raises(TableError, match="not UTF-8 text"):
        read_table(tmp_path / "runs.csv")


def test_csv_parquet_and_memory_agree(tmp_path: Path, study_table: pd.DataFrame) -> None:
    study_table.to_csv(tmp_path / "runs.csv", index=False)
    study_table.to_parquet(tmp_path / "runs.parquet", index=False)
    frames = [
        read_table(source).frame for source in (tmp_path / "runs.csv", tmp_path / "runs.parquet", study_table)
    ]
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frames[0], frame)


def test_a_byte_order_mark_and_trailing_blank_rows_do_no_harm(tmp_path: Path) -> None:
    path = write(tmp_path, f"\ufeff{HEADER}\n1,a,1,loss,2\n,,,,\n\n")
    assert len(read_table(path).frame) == 1


def test_seeds_may_repeat_a_cell() -> None:
    rows = pd.DataFrame(
        {"size": 1, "task": "a", "weight": 1, "metric": "loss", "value": [2, 3], "seed": [1, 2]}
    )
    assert len(select(read_table(rows)).fit) == 2
    with pytest.raises(TableError, match=r"rows 2 and 3.*`seed` column"):
        read_table(rows.assign(seed=1))


def test_the_last_step_of_every_run_counts() -> None:
    rows = pd.DataFrame(
        {"run": ["x", "x", "y"], "size": [1, 1, 2], "task": "a", "weight": 1, "metric": "loss",
         "value": [4.0, 3.0, 2.0], "step": [10, 20, 10]}
    )  # fmt: skip
    assert select(read_table(rows)).fit["value"].tolist() == [3.0, 2.0]


def test_two_runs_of_one_cell_are_a_repeat_even_at_different_steps() -> None:
    rows = pd.DataFrame(
        {
            "run": ["x", "y"],
            "size": 1,
            "task": "a",
            "weight": 1,
            "metric": "loss",
            "value": [4.0, 3.0],
            "step": [10, 20],
        }
    )
    with pytest.raises(TableError, match="rows 2 and 3: the same measurement twice"):
        select(read_table(rows))


def test_several_test_sets_need_a_choice_unless_one_is_called_test(study_table: pd.DataFrame) -> None:
    both = pd.concat([study_table, study_table.assign(testset="debian")])
    assert select(read_table(both)).testset == "test"
    renamed = both.replace({"testset": {"test": "news"}})
    with pytest.raises(
        TableError, match=r"several values of `testset` \(debian, news\); choose with --testset"
    ):
        select(read_table(renamed))
    with pytest.raises(TableError, match="no row has testset 'x'; the table has debian, news"):
        select(read_table(renamed), testset="x")
    with pytest.raises(TableError, match="no row has metric 'ter'; the table has chrf, loss"):
        select(read_table(both), metric="ter")


def test_architectures_are_not_mixed(study_table: pd.DataFrame) -> None:
    both = pd.concat([study_table.assign(architecture=name) for name in ("deep", "wide")])
    with pytest.raises(TableError, match="choose with --architecture"):
        select(read_table(both))
    assert len(select(read_table(both), architecture="deep").frame) == len(both) / 4


def test_zero_shot_rows_are_left_out_aloud() -> None:
    rows = pd.DataFrame(
        {"size": [1, 2, 3], "task": "a", "weight": [0, 0.5, 1], "metric": "loss", "value": 2.0}
    )
    observations = select(read_table(rows))
    assert observations.fit["weight"].tolist() == [0.5, 1]
    assert "1 zero-shot rows (weight 0) are left out" in observations.warnings[0]
