"""Scores that other tools gave, as columns or in files beside the text: the same from every format."""

import csv
import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mnmt_data.errors import DataError
from mnmt_data.readers import ScoreColumn, find_readers, open_reader, with_scores
from mnmt_data.readers.reader import BLOCK_PAIRS

PAIRS = [("a", "A", 0.5, "1.25"), ("b", "B", 1, "-2"), ("c", "C", 0.0625, "3e2")]
BICLEANER = ScoreColumn(name="bicleaner", column="bicleaner")
LASER = ScoreColumn(name="laser", column="laser_score")
SCORES = {"bicleaner": [0.5, 1, 0.0625], "laser": [1.25, -2, 300]}
HEADER = ("en", "de", "bicleaner", "laser_score")


def write_tsv(path, pairs):
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in (HEADER, *pairs)))


def write_csv(path, pairs):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *pairs])


def write_json(path, pairs):
    path.write_text("".join(json.dumps(dict(zip(HEADER, row, strict=True))) + "\n" for row in pairs))


def table_of(pairs):
    src, tgt, *scores = zip(*pairs, strict=True)
    numbers = [list(map(float, column)) for column in scores]
    return pa.table(dict(zip(HEADER, (src, tgt, *numbers), strict=True)))


def write_parquet(path, pairs):
    pq.write_table(table_of(pairs), path)


WRITERS = {"x.tsv": write_tsv, "x.csv": write_csv, "x.jsonl": write_json, "x.parquet": write_parquet}


def read(reader, *scores, **options):
    (block,) = with_scores(reader, scores).blocks(**options)
    return block


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_columns_of_a_table(tmp_path, name):
    WRITERS[name](tmp_path / name, PAIRS)
    reader = open_reader(str(tmp_path / name), "en-de")
    block = read(reader, BICLEANER, LASER)
    assert list(zip(block.src, block.tgt, strict=True)) == [(src, tgt) for src, tgt, *_ in PAIRS]
    assert {score: values.tolist() for score, values in block.scores.items()} == SCORES
    assert all(values.dtype == np.float32 for values in block.scores.values())
    assert read(reader).scores == {}


def test_columns_of_a_file_without_a_header_have_numbers(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tA\t0.5\nb\tB\t1\n")
    reader = open_reader(str(tmp_path / "x.tsv"), "en-de")
    assert read(reader, replace(BICLEANER, column=3)).scores["bicleaner"].tolist() == [0.5, 1]
    with pytest.raises(DataError, match=r"x\.tsv:1: has 3 columns and no header that names en-de"):
        read(reader, BICLEANER)
    numbered = replace(reader, columns=(("en", 1), ("de", 2)))
    message = "x.tsv: no column bicleaner among en, de, 3, for [data.scores] `bicleaner`; set its `column`"
    with pytest.raises(DataError, match=re.escape(message)):
        read(numbered, BICLEANER)
    with pytest.raises(DataError, match="no column 5 among en, de, 3"):
        read(numbered, replace(BICLEANER, column=5))
    named = replace(reader, columns=(("bicleaner", 3), ("en", 1), ("de", 2)))
    assert read(named, BICLEANER).scores["bicleaner"].tolist() == [0.5, 1]


def test_json_lines_have_no_numbered_columns(tmp_path):
    write_json(tmp_path / "x.jsonl", PAIRS)
    reader = open_reader(str(tmp_path / "x.jsonl"), "en-de")
    with pytest.raises(
        DataError, match=r"x\.jsonl: \[data\.scores\] `bicleaner` must have the name of a key"
    ):
        with_scores(reader, [replace(BICLEANER, column=3)])


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_a_missing_column_is_named_with_those_there_are(tmp_path, name):
    WRITERS[name](tmp_path / name, PAIRS)
    reader = open_reader(str(tmp_path / name), "en-de")
    message = r"no column kiwi among en, de, bicleaner, laser_score, for \[data\.scores\] `kiwi`; set its"
    with pytest.raises(DataError, match=rf"^{tmp_path}/{name}.*: {message}"):
        read(reader, ScoreColumn(name="kiwi", column="kiwi"))


@pytest.mark.parametrize("name", sorted(WRITERS))
@pytest.mark.parametrize("wrong", ["nan", "inf", "none", ""])
def test_what_is_no_number_is_named_or_skipped(tmp_path, name, wrong):
    if name == "x.parquet" and wrong not in ("nan", "inf"):
        pytest.skip("its columns hold numbers alone")
    WRITERS[name](tmp_path / name, [PAIRS[0], ("b", "B", wrong, "1"), PAIRS[2]])
    reader = open_reader(str(tmp_path / name), "en-de")
    place = {"x.parquet": ": row 2", "x.jsonl": ":2"}.get(name, ":3")
    with pytest.raises(DataError, match=rf"^{tmp_path}/{name}{place}: `bicleaner` must be a number, but is "):
        read(reader, BICLEANER, LASER)
    block = read(reader, BICLEANER, LASER, skip_bad=True)
    assert [line.row for line in block.bad] == [1]
    assert block.scores["bicleaner"][[0, 2]].tolist() == [0.5, 0.0625]


@pytest.mark.parametrize(
    ("text", "pattern", "scores"),
    [
        ("train.en-de.{}", "train.en-de.{lang}", "train.en-de.bicleaner"),
        ("train.en-de.{}.gz", "train.en-de.{lang}.gz", "train.en-de.bicleaner.gz"),
        ("x.{}.txt", "x.{lang}.txt", "x.bicleaner.txt"),
        ("{}.txt", "{lang}.txt", "bicleaner.txt"),
    ],
)
@pytest.mark.parametrize("task", ["en-de", "de-en"])
def test_a_file_beside_two_texts(tmp_path, text, pattern, scores, task):
    for name, lines in ((text.format("en"), "a\nb\n"), (text.format("de"), "A\nB\n"), (scores, "0.5\n1\n")):
        data = lines.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    reader = with_scores(open_reader(f"{tmp_path}/{pattern}", task), [BICLEANER])
    (block,) = reader.blocks()
    assert block.scores["bicleaner"].tolist() == [0.5, 1]
    assert reader.paths[-1] == tmp_path / scores
    if text.startswith("train"):
        (named,) = find_readers(tmp_path, "train", task)
        assert with_scores(named, [BICLEANER]).paths[-1] == tmp_path / scores


def test_a_file_beside_texts_of_individual_languages(tmp_path):
    for name in ("dev-nob_Latn.x", "dev-eng_Latn.x", "dev-bicleaner.x"):
        (tmp_path / name).write_text("1\n")
    reader = with_scores(open_reader(f"{tmp_path}/dev-{{lang}}.x", "no-en"), [BICLEANER])
    assert reader.paths[-1] == tmp_path / "dev-bicleaner.x"


def test_a_file_beside_a_table_is_read_in_place_of_a_column(tmp_path):
    write_tsv(tmp_path / "x.tsv", PAIRS)
    (tmp_path / "x.tsv.bicleaner").write_text("7\n8\n9\n")
    block = read(open_reader(str(tmp_path / "x.tsv"), "en-de"), BICLEANER, LASER)
    assert block.scores["bicleaner"].tolist() == [7, 8, 9]
    assert block.scores["laser"].tolist() == SCORES["laser"]


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "x.en").write_text("a\nb\nc\n")
    (tmp_path / "x.de").write_text("A\nB\nC\n")
    return open_reader(f"{tmp_path}/x.{{lang}}", "en-de")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("1\n2\n", "x.bicleaner: has 2 lines, fewer than there are pairs of {folder}/x.en."),
        ("1\n2\n3\n4\n", "x.bicleaner: has more lines than there are pairs of {folder}/x.en."),
        ("1\nx\n3\n", "x.bicleaner:2: `bicleaner` must be a number, but is 'x'."),
    ],
)
def test_a_file_that_does_not_fit_is_named(tmp_path, texts, lines, message):
    (tmp_path / "x.bicleaner").write_text(lines)
    with pytest.raises(
        DataError, match=rf"^{re.escape(str(tmp_path))}/{re.escape(message.format(folder=tmp_path))}$"
    ):
        read(texts, BICLEANER)


def test_lines_that_are_no_numbers_are_skipped_where_asked(tmp_path, texts):
    (tmp_path / "x.bicleaner").write_text("1\nx\n3\n")
    block = read(texts, BICLEANER, skip_bad=True)
    assert [(line.row, line.text) for line in block.bad] == [(1, "x")]


def test_a_missing_file_is_named(tmp_path, texts):
    with pytest.raises(DataError, match=rf"^{tmp_path}/x\.bicleaner: no such file; \[data\.scores\] needs"):
        with_scores(texts, [BICLEANER])


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_scores_stay_with_their_pairs_where_some_blocks_are_wanted(tmp_path, wanted):
    count = 2 * BLOCK_PAIRS + 5
    for name, prefix in (("en", "s"), ("de", "t"), ("bicleaner", "")):
        (tmp_path / f"x.{name}").write_text("".join(f"{prefix}{row}\n" for row in range(count)))
    reader = with_scores(open_reader(f"{tmp_path}/x.{{lang}}", "en-de"), [BICLEANER])
    blocks = list(reader.blocks(choice=lambda number: number == wanted))
    assert [len(block) > 0 for block in blocks] == [number == wanted for number in range(3)]
    block = blocks[wanted]
    assert block.src == [f"s{int(value)}" for value in block.scores["bicleaner"]]
