"""Lines that cannot be read: refused, or skipped and counted where a study asks for it."""

import re

import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import prepare_study
from mnmt_data.study import read_study

STUDY = """
name = "bad"
[data]
tasks = ["en-de"]
corpus = "{folder}/corpus"
dev_sentences = 5
test_sentences = 5
{more}
[data.vocab]
kind = "word"
size = 1000
"""
WORDS = ("bemo", "dira", "fulo", "gana", "hoti", "kelu", "lomi", "nasu", "pero", "rita")


@pytest.fixture
def folder(tmp_path):
    """200 pairs of which the second has no tab and the 51st is not UTF-8."""
    (tmp_path / "corpus").mkdir()
    lines = [f"{WORDS[row % 10]} {WORDS[row // 10 % 10]} {'x' * (row // 100 + 1)}" for row in range(200)]
    rows = [f"en {line}\tde {line}".encode() for line in lines]
    rows[1], rows[50] = b"no tab", b"en \xff\tde"
    (tmp_path / "corpus/train.en-de.tsv").write_bytes(b"".join(row + b"\n" for row in rows))
    return tmp_path


def run(folder, more=""):
    (folder / "study.toml").write_text(STUDY.format(folder=folder, more=more))
    return prepare_study(read_study(folder / "study.toml"), folder / "out", jobs=1)


def test_the_default_is_strict(folder):
    with pytest.raises(DataError, match=r"train\.en-de\.tsv:(2: has 1 column|51: not valid UTF-8)"):
        run(folder)


def test_bad_lines_are_skipped_counted_and_shown(folder, cli):
    data = run(folder, 'on_bad_line = "skip"')
    report = data.description.filters["en-de"]
    assert report.read == 200
    assert report.counts["bad line"] == 2
    path = folder / "corpus/train.en-de.tsv"
    assert report.samples["bad line"] == (
        (
            "no tab",
            f"{path}:2: has 1 column, but the first line has 2; put one tab between columns, and none into a "
            "sentence.",
        ),
        (
            "en \\xff\tde",
            f"{path}:51: not valid UTF-8 (byte 0xff); perhaps it is Windows-1252 or ISO-8859-1; "
            "convert the file to UTF-8.",
        ),
    )
    assert data.train_counts["en-de"].pairs + sum(report.counts.values()) == 200
    _, out, _ = cli("inspect", folder / "out/data")
    assert ["2", "bad", "line"] in [line.split() for line in out.splitlines()]


def test_more_than_the_share_is_a_mistake(folder):
    with pytest.raises(DataError) as raised:
        run(folder, 'on_bad_line = "skip"\nmax_bad_share = 0.009')
    path = re.escape(str(folder / "corpus/train.en-de.tsv"))
    counts = r"2 of 200 lines cannot be read, more than `max_bad_share` \(0\.009\) allows"
    assert re.fullmatch(f"{path}: {counts}; the first: {path}:2: has 1 column, but .*", str(raised.value))


def test_test_sets_are_read_strictly(folder):
    (folder / "corpus/test.en-de.tsv").write_text("one\n")
    with pytest.raises(DataError, match=r"test\.en-de\.tsv:1: has 1 column and no second side"):
        run(folder, 'on_bad_line = "skip"')


def test_codes_with_a_script_are_prepared(folder):
    corpus = folder / "corpus"
    text = (corpus / "train.en-de.tsv").read_bytes().split(b"\n")
    for name, side in (("en", 0), ("zh-Hans", 1)):
        lines = [line.split(b"\t")[side] for number, line in enumerate(text[:200]) if number not in (1, 50)]
        (corpus / f"train.en-zh-Hans.{name}").write_bytes(b"".join(line + b"\n" for line in lines))
    (folder / "study.toml").write_text(STUDY.replace("en-de", "en-zh-Hans").format(folder=folder, more=""))
    data = prepare_study(read_study(folder / "study.toml"), folder / "out", jobs=1)
    assert data.tasks == ("en-zh_Hans",)
    assert data.train_counts["en-zh_Hans"].pairs > 100
    assert data.vocab.tag("zh_Hans")
