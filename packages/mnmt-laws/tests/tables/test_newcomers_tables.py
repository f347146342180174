"""The tables that people have, each read right or refused in one line."""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import TableError, observe, read_table
from mnmt_laws.tables.growing import write_table

SIZES, WEIGHTS = np.repeat([2e7, 1.5e8, 1.5e9], 2), np.tile([0.1, 0.5], 3)
LOSSES = np.round(1.5 + 400 * SIZES**-0.34 + WEIGHTS / 8, 3)
RUNS = pd.DataFrame({"size": SIZES, "task": "de", "weight": WEIGHTS, "value": LOSSES})
SHORT = ["20M", "20M", "150M", "150M", "1.5B", "1.5B"]
COLUMNS = ["size", "task", "weight", "value"]


def check(
    source: Path, *, lines: str | tuple[str, ...] = (), metric: str = "loss", **options: object
) -> None:
    """Check that a file is read as `RUNS`, and that its warnings are these."""
    table = read_table(source, **options)  # type: ignore[arg-type]
    observations = observe(table)
    expected = RUNS.sort_values(["task", "weight", "size"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(observations.frame[COLUMNS], expected, check_dtype=False, rtol=1e-9)
    assert observations.metric == metric
    wanted = [lines] if isinstance(lines, str) else [*lines]
    assert [line.removeprefix(f"{source}: ") for line in table.warnings] == wanted


def one_line(source: Path, **options: object) -> str:
    """Return the message that refuses a file, without its path."""
    with pytest.raises(TableError) as caught:
        observe(read_table(source, **options))  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(str(source)).strip()


def save(frame: pd.DataFrame, path: Path, **options: object) -> Path:
    frame.to_csv(path, index=False, **options)  # type: ignore[arg-type, call-overload]
    return path


def text(path: Path, content: str, encoding: str = "utf-8") -> Path:
    path.write_text(content, encoding=encoding)
    return path


def german(frame: pd.DataFrame) -> str:
    """Return a table as a German Excel saves it: `150.000.000;de;0,1;2,147`."""
    rows = [
        f"{size:,.0f};{task};{weight};{value}".replace(".", "#").replace(",", ".").replace("#", ",")
        for size, task, weight, value in frame[COLUMNS].itertuples(index=False)
    ]
    return "\n".join(["size;task;weight;value", *rows, ""])


@pytest.mark.parametrize("mark", ["\t", ";", "|"])
def test_02_other_separators(tmp_path: Path, mark: str) -> None:
    check(save(RUNS, tmp_path / f"t.{'tsv' if mark == chr(9) else 'csv'}", sep=mark))


def test_03_a_german_excel(tmp_path: Path) -> None:
    lines = (
        "numbers have decimal commas: `size` 1.500.000.000 is read as 1.5e9.",
        "`size` has thousands separators: 1.500.000.000 is read as 1.5e9.",
    )
    check(text(tmp_path / "t.csv", german(RUNS), "utf-8-sig"), lines=lines)


def test_04_unicode_text_of_excel(tmp_path: Path) -> None:
    content = RUNS.to_csv(index=False, sep="\t", decimal=",")
    line = "numbers have decimal commas: `size` 150000000,0 is read as 1.5e8."
    check(text(tmp_path / "t.tsv", content, "utf-16"), lines=line)


def test_05_suffixes(tmp_path: Path) -> None:
    line = "`size` has suffixes: 1.5B is read as 1.5e9."
    check(save(RUNS.assign(size=SHORT), tmp_path / "t.csv"), lines=line)
    curve = text(tmp_path / "c.csv", "size,tokens,step,loss\n20M,1.5B,20k,2.5\n20 M,3b,40k,2.4\n")
    row = read_table(curve).frame.iloc[0]
    assert row[["size", "tokens", "step", "value"]].tolist() == [2e7, 1.5e9, 2e4, 2.5]


def test_06_percent_signs(tmp_path: Path) -> None:
    percent = RUNS.assign(weight=[f"{weight:.0%}" for weight in WEIGHTS])
    check(save(percent, tmp_path / "t.csv"), lines="`weight` holds percentages: 10% is read as 0.1.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "size,weight,loss\n1e6,10%,2.5\n1e6,0.5,2.4\n",
            "row 3: `weight` must be a percentage in every row or in none, but is '0.5'.",
        ),
        (
            "size,weight,loss\n1e6,10,2.5\n1e6,50,2.4\n",
            "rows 2 and 3: `weight` must be in [0, 1], but is 10; say --column "
            "weight=weight*0.01 if the column holds percentages.",
        ),
    ],
)
def test_07_percentages_beside_shares_or_without_a_sign(tmp_path: Path, content: str, message: str) -> None:
    assert one_line(text(tmp_path / "t.csv", content)) == message


@pytest.mark.parametrize("mark", [",", " ", "\u202f", "'"])
def test_08_thousands_separators(tmp_path: Path, mark: str) -> None:
    sizes = [f"{size:,.0f}".replace(",", mark) for size in SIZES]
    first, number = min((size, f"{float(count):.3g}") for size, count in zip(sizes, SIZES, strict=True))
    line = f"`size` has thousands separators: {first} is read as {number}.".replace("e+0", "e")
    check(save(RUNS.assign(size=sizes), tmp_path / "t.csv"), lines=line)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('size,bleu\n"1,234",30\n"5,678",31\n', "row 2: `size` 1,234 may be 1.234 or 1234; write it so."),
        (
            'size,loss\n1000,"2,345"\n2000,2.1\n',
            "row 2: `loss` 2,345 has a decimal comma, but `loss` 2.1 in {} row 3 a decimal point; write "
            "all numbers alike.",
        ),
        (
            'size,loss\n"1,000,000","2,5"\n',
            "row 2: `loss` 2,5 has a decimal comma, but `size` 1,000,000 in {} row 2 a decimal point; "
            "write all numbers alike.",
        ),
        (
            "size,loss\n1000,2,5\n",
            "row 2: 3 fields, but the header has 2; write decimal points, not commas, or separate fields "
            "by `;`, and put double quotes round a text that holds commas.",
        ),
    ],
)
def test_09_numbers_that_may_be_two(tmp_path: Path, content: str, message: str) -> None:
    path = text(tmp_path / "t.csv", content)
    assert one_line(path) == message.format(path)


def test_10_a_thousandth_is_a_decimal_where_losses_say_so(tmp_path: Path) -> None:
    """`1,234` is ambiguous by itself; a loss has no thousands, so its comma settles the file."""
    frame = read_table(text(tmp_path / "t.csv", "size;loss\n1,234e9;2,345\n2.000.000;1,234\n")).frame
    assert frame[["size", "value"]].to_numpy().tolist() == [[1.234e9, 2.345], [2e6, 1.234]]


def test_11_perplexities(tmp_path: Path) -> None:
    frame = RUNS.drop(columns="value").assign(valid_ppl=np.exp(LOSSES))
    lines = (
        "taken from other columns: value from `valid_ppl`.",
        "`valid_ppl` holds perplexities: their logarithms are taken, nats per token.",
    )
    assert read_table(save(frame, tmp_path / "t.csv")).warnings[0].endswith(lines[0])
    frame = frame.rename(columns={"valid_ppl": "ppl"})
    check(
        save(frame, tmp_path / "t.csv"),
        lines=(lines[0].replace("valid_", ""), lines[1].replace("valid_", "")),
        metric="log_ppl",
    )


@pytest.mark.parametrize(
    "names",
    [
        {"size": "params", "task": "lang", "weight": "p", "value": "loss"},
        {"size": "N", "task": "language", "weight": "ratio", "value": "eval/loss"},
        {"size": "n_params", "task": "domain", "weight": "proportion", "value": "Validation Loss"},
        {"size": "Model Size", "task": "Language Pair", "weight": "Share", "value": "test_loss"},
    ],
)
def test_12_other_names(tmp_path: Path, names: dict[str, str]) -> None:
    taken = ", ".join(f"{role} from `{name}`" for role, name in names.items())
    path = save(RUNS.rename(columns=names).assign(train_loss=1.0, lr=1e-3), tmp_path / "t.csv")
    check(path, lines=f"taken from other columns: {taken}.")


def test_13_units_in_names(tmp_path: Path) -> None:
    frame = RUNS.assign(**{"Params (M)": SIZES / 1e6}).drop(columns="size")
    check(save(frame, tmp_path / "t.csv"), lines="taken from other columns: size from `Params (M)*1e6`.")


def test_14_two_columns_of_one_meaning_are_asked_about(tmp_path: Path) -> None:
    path = save(RUNS.drop(columns="size").assign(ModelSize=256, params=SIZES), tmp_path / "t.csv")
    message = "row 1: `ModelSize` and `params` may both hold `size`; choose one, as in --column size=params."
    assert one_line(path) == message
    check(path, columns={"size": "params"})


WIDE = pd.DataFrame({"size": SIZES[::2], "w/de": [0.3, 0.5, 0.2], "w/fr": [0.7, 0.5, 0.8]})
WIDE = WIDE.assign(de_loss=[2.0, 1.9, 1.8], fr_loss=[3.0, 2.9, 2.8])


def test_15_a_wide_table(tmp_path: Path) -> None:
    table = read_table(save(WIDE, tmp_path / "t.csv"))
    assert table.warnings[0].endswith(
        "taken from other columns: mixture from `w/*` (2 columns), value from `*_loss` (2 columns)."
    )
    rows = table.frame.pivot(index="size", columns="task", values=["value", "weight"]).reset_index(drop=True)
    for name in ("de", "fr"):
        assert rows["value", name].tolist() == WIDE[f"{name}_loss"].tolist()
        assert rows["weight", name].tolist() == WIDE[f"w/{name}"].tolist()
    percent = WIDE.assign(**{name: WIDE[name] * 100 for name in ("w/de", "w/fr")})
    other = read_table(save(percent, tmp_path / "p.csv"))
    np.testing.assert_allclose(other.frame["weight"], table.frame["weight"])
    assert other.warnings[-1].endswith("the weights of `mixture` sum to 100 and are read as percentages.")


def test_16_a_wide_table_without_mixtures_is_asked_about(tmp_path: Path) -> None:
    path = save(WIDE[["size", "de_loss", "fr_loss"]], tmp_path / "t.csv")
    assert one_line(path) == (
        "row 1: no column `value` (is one of `de_loss`, `fr_loss` meant?); rename what holds it, or say "
        '--column value=de_loss, or gather the columns of all tasks: --column "value=*_loss"; the table has '
        "size, de_loss, fr_loss."
    )
    assert observe(path, columns={"value": "*_loss"}).tasks == ["de", "fr"]


def test_18_an_excel_workbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.xlsx"
    RUNS.assign(size=SHORT).to_excel(path, index=False)
    check(path, lines="`size` has suffixes: 1.5B is read as 1.5e9.")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    message = ': reading Excel needs openpyxl: pip install "mnmt-laws[excel]"; or save the sheet as CSV.'
    assert one_line(path) == message


def test_18_other_files_are_no_workbooks(tmp_path: Path) -> None:
    assert "not an Excel workbook" in one_line(text(tmp_path / "bad.xlsx", "size,value"))


def test_18_parquet_without_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    write_table(RUNS, path)
    check(path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    message = ': Parquet needs pyarrow: pip install "mnmt-laws[parquet]"; or save it as CSV.'
    assert one_line(path) == message
    with pytest.raises(TableError, match=re.escape(message)):
        write_table(RUNS, path)


def test_19_json_and_lines_of_json(tmp_path: Path) -> None:
    records = RUNS.to_dict("records")
    check(text(tmp_path / "t.json", json.dumps(records, indent=1)))
    check(text(tmp_path / "columns.json", json.dumps(RUNS.to_dict("list"))))
    check(text(tmp_path / "t.jsonl", "".join(json.dumps(record) + "\n" for record in records)))
    nested = [{"N": 1e6, "loss": {"de": 2.0, "fr": 3.0}, "mixture": {"de": 0.3, "fr": 0.7}}]
    frame = read_table(text(tmp_path / "n.jsonl", json.dumps(nested[0]))).frame
    assert frame[["task", "weight", "value"]].to_numpy().tolist() == [["de", 0.3, 2.0], ["fr", 0.7, 3.0]]
    broken = text(tmp_path / "b.jsonl", '{"size": 1}\n{"size": \n')
    assert one_line(broken) == ":2: not JSON (Expecting value); write a record for each row."


def test_20_compressed_files(tmp_path: Path) -> None:
    for ending, mode in ((".gz", "gzip"), (".bz2", "bz2"), (".xz", "xz")):
        check(save(RUNS, tmp_path / f"t.csv{ending}", compression=mode))
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(RUNS.to_json(orient="records", lines=True).encode()))
    check(tmp_path / "t.jsonl.gz")
    assert "cannot be read" in one_line(text(tmp_path / "bad.csv.gz", "size,value\n1,2\n"))


@pytest.mark.parametrize("head", ["train_the_pile_", ""])
def test_21_mixtures_in_a_second_file(tmp_path: Path, head: str) -> None:
    """RegMix names the sources of its weights by a prefix, and Olmix by nothing else than themselves."""
    key = "index" if head else "run"
    mixtures = pd.DataFrame({key: [2, 1, 3], f"{head}de": [0.5, 0.3, 0.2], f"{head}fr": [0.5, 0.7, 0.8]})
    losses = pd.DataFrame({key: [1, 2], "metric/de_val_loss": [2.0, 1.9], "metric/fr_val_loss": [3.0, 2.9]})
    paths = save(losses, tmp_path / "losses.csv"), save(mixtures, tmp_path / "mixtures.csv")
    table = read_table(paths[0], runs=paths[1], columns={"size": "1M"})
    assert table.frame[["size", "task", "weight", "value"]].to_numpy().tolist() == [
        [1e6, "de", 0.3, 2.0], [1e6, "fr", 0.7, 3.0], [1e6, "de", 0.5, 1.9], [1e6, "fr", 0.5, 2.9],
    ]  # fmt: skip
    save(losses.assign(**{key: [1, 4]}), paths[0])
    assert one_line(paths[0], runs=paths[1]) == f"row 3: {key} 4 is not in {paths[1]}, which has 2, 1, 3."
    save(losses.rename(columns={key: "id"}), paths[0])
    with pytest.raises(
        TableError, match=r"row 1: no column is in .*losses\.csv as well, so nothing says which"
    ):
        read_table(paths[0], runs=paths[1])


def curves() -> pd.DataFrame:
    """Two models, measured at ten lengths each."""
    lengths = np.tile(np.arange(1.0, 11), 2) * 1e9
    sizes = np.repeat([1e8, 4e8], 10)
    return pd.DataFrame(
        {"model_size": sizes, "n_tokens": lengths, "loss": 2 + 30 * sizes**-0.2 * lengths**-0.02}
    )


def test_22_learning_curves_without_a_run(tmp_path: Path) -> None:
    frame = curves().assign(step=lambda rows: rows["n_tokens"] / 1e5)
    steps = observe(save(frame.drop(columns="n_tokens"), tmp_path / "steps.csv"))
    assert steps.frame["value"].tolist() == frame["loss"].iloc[[9, 19]].tolist()
    assert steps.warnings[1].endswith("several `step` are learning curves: the last row of each counts.")
    path = save(frame, tmp_path / "tokens.csv")
    assert len(observe(path).frame) == 20
    assert len(observe(path).warnings) == 1
    between = observe(path, at={"tokens": np.sqrt(2) * 1e9}).frame
    first, second = (frame["loss"].to_numpy()[[place, place + 10]] for place in (0, 1))
    np.testing.assert_allclose(between["value"], np.sqrt(first * second))


def test_23_replicates_without_a_seed(tmp_path: Path) -> None:
    again = pd.concat([RUNS, RUNS.assign(value=LOSSES + 0.01)])
    observations = observe(save(again, tmp_path / "t.csv"))
    assert observations.frame.groupby("seed")["value"].apply(sorted).tolist() == [
        sorted(LOSSES), sorted(LOSSES + 0.01)
    ]  # fmt: skip
    line = "rows of one model and length, up to 2, are replicates: they are numbered as seeds."
    assert observations.warnings[0].endswith(line)


def test_24_repeats_of_the_last_checkpoint(tmp_path: Path) -> None:
    """As in the public table of Shukor et al.'s models: the last loss again, a few steps later."""
    last = curves().iloc[[9, 19]].assign(n_tokens=1.0001e10)
    observations = observe(save(pd.concat([curves(), last]), tmp_path / "t.csv"))
    assert len(observations.frame) == 20
    assert observations.frame["tokens"].max() == 1.0001e10
    assert observations.warnings[1].endswith("2 rows repeat others, value included, and are left out.")
    assert len(observe(save(pd.concat([RUNS, RUNS]), tmp_path / "twice.csv")).frame) == 6


def test_25_a_suffix_in_the_cells_comes_before_the_unit_of_the_name(tmp_path: Path) -> None:
    frame = RUNS.assign(**{"Params (M)": SHORT}).drop(columns="size")
    table = read_table(save(frame, tmp_path / "t.csv"))
    assert table.frame["size"].tolist() == SIZES.tolist()


def test_26_sources_are_whole_language_pairs(tmp_path: Path) -> None:
    mixture = {"mix_en-de": WEIGHTS, "mix_en-fr": 1 - WEIGHTS}
    frame = RUNS.assign(task="en-de", **mixture).drop(columns="weight")
    assert read_table(save(frame, tmp_path / "t.csv")).frame["weight"].tolist() == WEIGHTS.tolist()


def test_27_choices_are_no_mixture(tmp_path: Path) -> None:
    frame = RUNS.iloc[::2][["size", "value"]].assign(use_adam=[1, 0, 1], use_sgd=[0, 1, 0])
    table = read_table(save(frame, tmp_path / "t.csv"))
    assert (table.frame["mixture"] == "").all()


def test_28_an_option_may_name_what_a_column_holds(tmp_path: Path) -> None:
    """As the message about a wrong unit does, which knows no names of the file."""
    frame = RUNS.assign(train_tokens=0.2)
    path = save(frame, tmp_path / "t.csv")
    assert (read_table(path, columns={"tokens": "tokens*1e9"}).frame["tokens"] == 2e8).all()


def test_29_cells_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    path = text(tmp_path / "t.json", json.dumps([{"size": 1e6, "value": [1, 2], "tags": ["x"]}] * 3))
    assert one_line(path) == "rows 2, 3 and 4: `value` must be a number, but is '[1, 2]'."
    cells = RUNS.astype(object)
    cells.loc[2, "value"] = pd.Timestamp("2026-05-01")
    cells.to_excel(tmp_path / "t.xlsx", index=False)
    message = "row 4: `value` must be a number, but is '2026-05-01 00:00:00'."
    assert one_line(tmp_path / "t.xlsx") == message


def test_30_blank_rows_have_no_mixture(tmp_path: Path) -> None:
    mixtures = pd.DataFrame({"run": range(6), "de": WEIGHTS, "fr": 1 - WEIGHTS})
    losses = save(RUNS.assign(run=range(6)).drop(columns="weight"), tmp_path / "t.csv")
    text(losses, losses.read_text(encoding="utf-8") + ",,,\n\n")
    table = read_table(losses, runs=save(mixtures, tmp_path / "mixtures.csv"))
    assert table.frame["weight"].tolist() == WEIGHTS.tolist()


@pytest.mark.parametrize(("bad", "rows"), [(3, "2, 3 and 4"), (9, "2, 3, 4, 5 and 5 more")])
def test_all_bad_cells_of_a_column_are_named_in_one_line(tmp_path: Path, bad: int, rows: str) -> None:
    path = save(pd.DataFrame({"size": 1e6, "loss": ["x"] * bad + ["2.5"]}), tmp_path / "t.csv")
    assert one_line(path) == f"rows {rows}: `loss` must be a number, but is 'x'."


def test_unread_tasks_and_weights_are_named_together(tmp_path: Path) -> None:
    frame = pd.DataFrame({"Modell": [*"aabb"], "Params": [1e6, 1e6, 2e6, 2e6], "Sprache": ["de", "fr"] * 2})
    frame = frame.assign(Dropout=0.3, Anteil=[0.3, 0.7, 0.5, 0.5], Loss=[3.0, 2.9, 2.8, 2.7])
    path = save(frame, tmp_path / "t.csv")
    assert one_line(path) == (
        "rows 2 and 3: one model and length, for there is no column `task` and no `weight`; not read: "
        "Modell, Sprache, Dropout, Anteil; name them, as in --column task=Sprache --column weight=Anteil."
    )


def test_weights_of_another_sum_are_refused_before_anything_else(tmp_path: Path) -> None:
    path = save(WIDE.assign(**{"w/fr": WIDE["w/fr"] - 0.1}), tmp_path / "t.csv")
    message = "row 2: the columns `w/*` sum to 0.9, not 1; give the weight of every source of the mixture."
    assert one_line(path) == message
    assert one_line(path, columns={"value": "*_loss"}) == message


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [
        ("*", "if de, fr hold losses, rename them to loss_de, loss_fr."),
        ("valid_*", 'if `valid_*` hold losses, say --column "value=valid_*".'),
    ],
)
def test_values_named_by_tasks_alone_are_asked_about(tmp_path: Path, pattern: str, remedy: str) -> None:
    names = {f"{task}_loss": pattern.replace("*", task) for task in ("de", "fr")}
    path = save(WIDE.rename(columns=names), tmp_path / "t.csv")
    assert one_line(path) == f"row 1: no column `value`; {remedy}"
