"""Reading run tables: what is accepted, and what each mistake says."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws import TableError, example_table, observe, read_table
from mnmt_laws.fitting.diagnostics import fit_warnings
from mnmt_laws.laws import LAWS

HEADER = "size,task,weight,metric,value"
ROW = "1,a,1,loss,2\n"


def write(folder: Path, text: str, name: str = "runs.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "{}: the file is empty; a run table needs a header and a row for each measurement."),
        (HEADER, "{}: has a header but no rows; add a row for each measurement."),
        (
            f"\n{HEADER}\n{ROW}",
            "{} row 1: blank; put the header (size,task,weight,metric,value) in the first row.",
        ),
        (
            "size,task,weigth,metric,value\n1,a,1,loss,2\n",
            "{} row 1: no column `weight` (is `weigth` meant?); rename what holds it, or say --column "
            "weight=weigth; the table has size, task, metric, value, weigth.",
        ),
        (
            "colour,task\nred,a\n",
            "{} row 1: no column `size` and no `value`; rename what holds it, or say --column size=COLUMN "
            "--column value=COLUMN, or --column size=1e6 if all models have one size; the table "
            "has task, colour.",
        ),
        (f"{HEADER},value\n1,a,1,loss,2,3\n", "{} row 1: 2 columns are called `value`; remove all but one."),
        (
            f"{HEADER}\n{ROW}2,a,1,loss\n3,a,1,loss\n",
            "{} row 3 (and 1 more row): 4 fields, but the header has 5; give every row a field for every "
            "column, empty where there is nothing.",
        ),
        (
            f"{HEADER}\n\n1,a,1,loss,2,5\n",
            "{} row 3: 6 fields, but the header has 5; write decimal points, not commas, or separate "
            "fields by `;`, and put double quotes round a text that holds commas.",
        ),
        (
            f"{HEADER},mixture\n1,a,0.3,loss,2,a:0.3,b:0.7\n",
            "{} row 2: 7 fields, but the header has 6; put double quotes round a mixture, as it holds "
            "commas.",
        ),
        (
            f'{HEADER}\n{ROW}1,"b,1,loss,2\n1,c,1,loss,2\n',
            "{} row 3: a double quote is not closed; close or remove it.",
        ),
        (
            f"{HEADER},x\r,y\n{ROW}",
            "{} row 2 (and 1 more row): 2 fields, but the header has 6; give every row a field for every "
            "column, empty where there is nothing.",
        ),
        (
            'size,task,mixture,value\n1,a,"a:0.5,b:0.5",2\n2,a,,2\n',
            "{} row 3: `mixture` is empty; give it in every row.",
        ),
        (
            "size,share_a,share_b,loss_a,loss_b,hours\n1,.5,.5,2,3,7\n1,.5,.5,2,3.1,8\n2,.5,.5,2,3,7\n"
            "3,.5,.5,2,3,8\n",
            "{} rows 2 and 3: the same model and length but for `hours`, which is not read; name what it "
            "holds, as in --column mixture=hours, or --column seed=hours for replicates.",
        ),
        (
            f"{HEADER}\n{ROW}2,a,1,loss,nan\n3,a,1,loss,\n",
            "{} rows 3 and 4: `value` is empty or NaN; leave the row out if the run has no result.",
        ),
        *(
            (
                f"{HEADER}\n1,a,1,loss,{text}\n",
                f"{{}} row 2: `value` must be finite, but is {shown}; leave the row out if the run has no "
                "result.",
            )
            for text, shown in (("inf", "inf"), ("1e999", "inf"))
        ),
        *(
            (f"{HEADER}\n{fields}\n", f"{{}} row 2: {rest}.")
            for fields, rest in (
                ("1,a,1,loss,two", "`value` must be a number, but is 'two'"),
                ("about 1,a,1,loss,2", "`size` must be a number, such as 2e7 or 20M, but is 'about 1'"),
                ("1,a,1:3,loss,2", "`weight` must be a number, such as 0.1 or 10%, but is '1:3'"),
                (
                    "1,a,1,loss,-0.5",
                    "a loss must be above 0 nats per token, but is -0.5; give the cross-entropy, not the "
                    "log-likelihood",
                ),
                ("0,a,1,loss,2", "`size` must be above 0 parameters, but is 0"),
                (
                    "1,a,-0.1,loss,2",
                    "`weight` must be in [0, 1], but is -0.1; give the task's share of the mixture",
                ),
                (
                    "1,a,5,loss,2",
                    "`weight` must be in [0, 1], but is 5; say --column weight=weight*0.01 if the column "
                    "holds percentages",
                ),
                (
                    "1,a,1,BLEU,101",
                    "bleu must be in [0, 100], but is 101; correct the value, or the row's `metric`",
                ),
                ("1,,1,loss,2", "`task` is empty; give one in every row"),
            )
        ),
        (
            f"{HEADER},seed\n1,a,1,loss,2,1\n\n1,a,1,loss,3,1\n",
            "{} rows 2 and 4: the same measurement twice; remove one, or tell repeated runs apart in the "
            "`seed` column.",
        ),
        (
            f"{HEADER},lr\n1,a,1,loss,2,0.1\n1,a,1,loss,3,0.2\n2,a,1,loss,2,0.1\n2,a,1,loss,3,0.2\n",
            "{} rows 2 and 3: the same model and length but for `lr`, which is not read; name what it "
            "holds, as in --column mixture=lr, or --column seed=lr for replicates.",
        ),
        (
            f"{HEADER},role\n1,a,1,loss,2,test\n",
            "{} row 2: `role` must be fit, held-out or left-out, but is 'test'.",
        ),
        (
            f"{HEADER},irreducible\n1,a,1,loss,2,-1\n",
            "{} row 2: `irreducible` must be at least 0 and no more than the loss that "
            "was measured, but is -1.",
        ),
        (f"{HEADER},tokens\n1,a,1,loss,2,-1\n", "{} row 2: `tokens` must not be negative, but is -1."),
        *(
            (
                f'{HEADER},mixture\n1,a,0.4,loss,2,"{mixture}"\n2,a,0.4,loss,2,"{mixture}"\n',
                f"{{}} row{rest}.",
            )
            for mixture, rest in (
                (
                    "a:0.3,b:0.7",
                    "s 2 and 3: `weight` of a is 0.4, but `mixture` gives it 0.3; they must agree",
                ),
                (
                    "a:0.4,b:0.7",
                    " 2: the weights of `mixture` must sum to 1, but 'a:0.4,b:0.7' sums to 1.1; they may be "
                    "off by 0.01, for rounding",
                ),
                (
                    "a:1.4,b:-0.4",
                    " 2: the weights of `mixture` must not be negative, but are in 'a:1.4,b:-0.4'",
                ),
                ("a:0.4,a:0.6", " 2: `mixture` must name a task once, but is 'a:0.4,a:0.6'"),
                ("a=0.4", " 2: `mixture` must read TASK:WEIGHT,TASK:WEIGHT, but is 'a=0.4'"),
            )
        ),
        (
            f"{HEADER},run\n1,a,0.3,loss,2,ok\n1,a,0.7,loss,2,x\n1,b,0.7,loss,2,x\n",
            "{} rows 3 and 4: the weights of run x sum to 1.4 (a 0.7, b 0.7); give each trained model its "
            "own `run`, and weights that sum to at most 1.",
        ),
    ],
)
def test_mistakes_are_named_with_file_and_row(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert str(caught.value) == message.replace("{}", str(path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv", r"no such file; give a table \(.csv, .*\), or a folder of run records"),
        ("runs.txt", "a run table must be a file in .csv, .*; save it so"),
        ("bad.parquet", r"not a Parquet file \(.*\); write it again"),
        (
            "folder.csv",
            "a folder, but a run table must be a file .*; `mnmt-laws collect` makes",
        ),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    for existing in ("runs.txt", "bad.parquet"):
        write(tmp_path, "not a table", existing)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / name)


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_bytes(HEADER.encode() + b"\n1,\xff,1,loss,2\n")
    with pytest.raises(
        TableError, match="neither UTF-8 nor UTF-16 text at byte 32; save the table as UTF-8 CSV"
    ):
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
    assert len(observe(rows).fit) == 2
    with pytest.raises(TableError, match="rows 2 and 3: the same measurement twice"):
        read_table(rows.assign(seed=1))


@pytest.mark.parametrize(
    ("column", "runs", "values"),
    [
        ("step", ["x", "y"], [4.0, 3.0]),
        ("tokens", ["x", "y"], [4.0, 3.0]),
        ("tokens", ["", ""], [4.0, 3.0]),
        ("step", ["", ""], [3.0]),
    ],
)
def test_lengths_tell_runs_of_one_cell_apart(column: str, runs: list[str], values: list[float]) -> None:
    """Only steps without runs or tokens are a learning curve, whose last measurement counts."""
    rows = pd.DataFrame(
        {"run": runs, "size": 1, "task": "a", "weight": 1, "metric": "loss", "value": [4.0, 3.0]}
    )
    assert observe(rows.assign(**{column: [10, 20]})).frame["value"].tolist() == values
    replicates = observe(rows.assign(**{column: 10}))
    assert replicates.frame["seed"].tolist() == [1, 2]
    assert "are replicates" in replicates.warnings[0]


def test_several_test_sets_need_a_choice_unless_one_is_called_test(study_table: pd.DataFrame) -> None:
    both = pd.concat([study_table, study_table.assign(testset="debian")])
    assert observe(both).testset == "test"
    renamed = both.replace({"testset": {"test": "news"}})
    with pytest.raises(
        TableError,
        match=r"several values of `testset` \(debian, news\); choose one as `testset` \(--testset\)",
    ):
        observe(renamed)
    with pytest.raises(TableError, match="no row has testset 'x'; the table has debian, news"):
        observe(renamed, testset="x")
    with pytest.raises(TableError, match="no row has metric 'ter'; the table has chrf, loss"):
        observe(both, metric="ter")


def test_architectures_are_not_mixed(study_table: pd.DataFrame) -> None:
    both = pd.concat([study_table.assign(architecture=name) for name in ("deep", "wide")])
    with pytest.raises(TableError, match=r"choose one as `architecture` \(--architecture\)"):
        observe(both)
    assert len(observe(both, architecture="deep").frame) == len(both) / 4


def test_zero_shot_rows_are_kept_for_laws_that_take_them() -> None:
    rows = pd.DataFrame(
        {"size": [1, 2, 3], "task": "a", "weight": [0, 0.5, 1], "metric": "loss", "value": 2.0}
    )
    observations = observe(rows)
    assert observations.fit["weight"].tolist() == [0.5, 1]
    assert observations.rows_to_fit(zero_shot=True)["weight"].tolist() == [0, 0.5, 1]
    assert observations.warnings == ()
    assert fit_warnings(observations, LAWS["transfer-capacity"]) == ()
    assert fit_warnings(observations, LAWS["joint"]) == (
        "1 zero-shot row (weight 0) is left out of the fits: the joint law holds for weights above 0.",
    )


def test_rows_keep_their_numbers_after_blank_and_wrapped_ones(tmp_path: Path) -> None:
    path = write(tmp_path, f'{HEADER},run\n1,a,1,loss,2,"first\nrun"\n\n,,,,,\n2,a,1,loss,2,second\n')
    frame = read_table(path).frame
    assert frame["row"].tolist() == [2, 5]
    assert frame["run"].tolist() == ["first\nrun", "second"]


def test_a_text_may_hold_an_odd_number_of_quotes(tmp_path: Path) -> None:
    path = write(tmp_path, f'{HEADER},run\n1,a,1,loss,2,5" wide\n')
    assert read_table(path).frame["run"].tolist() == ['5" wide']


def test_spaces_round_names_and_fields_do_no_harm(tmp_path: Path) -> None:
    path = write(tmp_path, " size, task ,weight,metric,value\n 1 , a ,1, loss , 2.5 \n")
    row = read_table(path).frame.iloc[0]
    assert (row["size"], row["task"], row["metric"], row["value"]) == (1, "a", "loss", 2.5)


def test_an_index_column_and_other_columns_are_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path, ",size,task,weight,metric,value,colour\n0,1,a,1,loss,2,red\n")
    table = read_table(path)
    assert len(table.frame) == 1
    assert table.warnings == ()


@pytest.mark.parametrize(
    ("column", "warnings"),
    [
        ("seeds", ("table: taken from other columns: seed from `seeds`.",)),
        ("Encoder size", ("table: taken from other columns: encoder_size from `Encoder size`.",)),
        ("encodersize", ("table: column `encodersize` is not read; rename it to `encoder_size` if that is "
                         "what it holds.",)),
        ("colour", ()),
        ("gpu_hours", ()),
    ],
)  # fmt: skip
def test_slips_in_optional_columns_are_warned_of(column: str, warnings: tuple[str, ...]) -> None:
    rows = pd.DataFrame({"size": [1], "task": "a", "weight": 1, "metric": "loss", "value": 2.0, column: 1})
    assert read_table(rows).warnings == warnings


def test_tasks_spelt_alike_are_warned_of_and_kept_apart() -> None:
    tasks = ["en-de", "EN-DE", "en de", "en-fr"]
    rows = pd.DataFrame({"size": 1, "task": tasks, "weight": 1, "metric": "loss", "value": 2.0})
    table = read_table(rows)
    assert table.warnings == (
        "table: tasks `EN-DE`, `en de`, `en-de` are kept apart, but differ only by case, spaces or dashes; "
        "write them alike if they are one.",
    )
    assert observe(table).warnings == table.warnings
    assert observe(table).tasks == sorted(tasks)


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=20, unique=True))
def test_numbers_are_read_to_the_last_bit(values: list[float]) -> None:
    rows = pd.DataFrame(
        {"size": range(1, len(values) + 1), "task": "a", "weight": 1, "metric": "loss", "value": values}
    )
    with TemporaryDirectory() as folder:
        rows.to_csv(Path(folder) / "runs.csv", index=False)
        read = read_table(Path(folder) / "runs.csv").frame["value"].tolist()
    assert read == values
    assert read_table(rows.astype({"value": str})).frame["value"].tolist() == values


@given(st.text(max_size=400))
def test_any_text_is_read_or_refused(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        path.write_bytes((f"{HEADER}\n1,a,1,loss,2\n" + text).encode("utf-8", "surrogatepass"))
        with suppress(TableError):
            assert not read_table(path).frame.empty


def test_the_example_is_a_study_of_two_tasks_with_everything_a_law_needs() -> None:
    table = example_table()
    assert table.source == "example"
    assert table.warnings == ()
    assert sorted(table.frame["metric"].unique()) == ["bleu", "chrf", "loss"]
    observations = observe(table)
    assert len(observations.tasks) == 2
    assert observations.fit["size"].nunique() >= 3
    assert not observations.held_out.empty
    columns = ["encoder_size", "decoder_size", "tokens", "flops", "step", "seed", "irreducible"]
    assert observations.frame[columns].notna().all(axis=None)
    assert observations.frame[["run", "architecture", "mixture"]].ne("").all(axis=None)


def test_a_run_of_several_tasks_needs_weights() -> None:
    rows = pd.DataFrame({"run": "x", "size": 1e6, "task": ["a", "b"], "value": [2.0, 3.0]})
    message = (
        r"rows 2 and 3: run x has several tasks, but the table has no column `weight` or `mixture`; name"
    )
    with pytest.raises(TableError, match=message):
        read_table(rows)


def test_what_two_tasks_leave_belongs_to_a_named_source() -> None:
    rows = pd.DataFrame(
        {"run": "x", "size": 1e6, "task": ["a", "b"], "weight": [0.2, 0.3], "value": [2.0, 3.0]}
    )
    message = r"the weights of run x sum to 0.5 \(a 0.2, b 0.3\).*the rest of its sources in a `mixture`"
    with pytest.raises(TableError, match=message):
        read_table(rows)
    assert len(read_table(rows.assign(mixture="a:0.2,b:0.3,c:0.5")).frame) == 2
