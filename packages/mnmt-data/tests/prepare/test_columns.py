"""Columns that a study numbers or names, from its TOML to prepared data."""

import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import prepare_study
from mnmt_data.study import read_study

STUDY = """
name = "mined"
[data]
tasks = {tasks}
dev_sentences = 5
test_sentences = 5
{more}
[data.files.train]
en-de = ["{folder}/CCMatrix.tsv"]
de-en = ["{folder}/CCMatrix.tsv"]
[data.vocab]
kind = "word"
size = 2000
"""
SCORE = "scores.laser = { column = 1, min = 1.1 }"
WORDS = ("bemo", "dira", "fulo", "gana", "hoti", "kelu", "lomi", "nasu", "pero", "rita")


@pytest.fixture
def prepare(tmp_path):
    words = [f"{WORDS[row % 10]} {WORDS[row // 10 % 10]} {'x' * (row // 100 + 1)}" for row in range(200)]
    rows = [f"{1 + row / 1000}\ten {text}\tde {text}\n" for row, text in enumerate(words)]
    (tmp_path / "CCMatrix.tsv").write_text("".join(rows))

    def run(more="", tasks='["en-de"]'):
        text = STUDY.format(folder=tmp_path, more=more, tasks=tasks)
        if "de-en" not in tasks:
            text = text.replace(f'de-en = ["{tmp_path}/CCMatrix.tsv"]\n', "")
        (tmp_path / "study.toml").write_text(text)
        return prepare_study(read_study(tmp_path / "study.toml"), tmp_path / "out", jobs=1)

    return run


def first_words(data, task):
    return [{line.split()[0] for line in side} for side in data.text("dev", task)]


def test_a_table_of_three_columns_is_refused_until_two_are_the_sides(prepare):
    with pytest.raises(DataError, match=r"CCMatrix\.tsv:1: has 3 columns and no header that names en-de;"):
        prepare()
    scored = prepare(SCORE)
    assert scored.description.filters["en-de"].counts["laser"] == 100
    assert scored.train_counts["en-de"].pairs == 90
    assert first_words(scored, "en-de") == [{"en"}, {"de"}]
    assert prepare('columns."CC*.tsv" = { en = 2, de = 3 }').train_counts["en-de"].pairs == 190


def test_columns_say_which_side_is_which_in_both_directions(prepare):
    both = '["de-en", "en-de"]'
    with pytest.raises(DataError, match="does not say which side is which"):
        prepare(SCORE, both)
    data = prepare(f'columns."CCMatrix.tsv" = {{ en = 2, de = 3 }}\n{SCORE}', both)
    assert first_words(data, "en-de") == [{"en"}, {"de"}]
    assert first_words(data, "de-en") == [{"de"}, {"en"}]


def test_changed_columns_are_other_data(prepare):
    first = prepare('columns."CCMatrix.tsv" = { en = 2, de = 3 }')
    second = prepare('columns."CCMatrix.tsv" = { en = 3, de = 2 }')
    assert first.description.fingerprint != second.description.fingerprint
    assert first_words(second, "en-de") == [{"de"}, {"en"}]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('columns."CCMatrix.tsv" = { en = 0, de = 3 }', r"CCMatrix\.tsv:1: no column 0 among 1, 2, 3; mend"),
        ('columns."CCMatrix.tsv" = { en = 1.5, de = 3 }', r"columns.* must be an integer or a string"),
        (
            'columns."CCMatrx.tsv" = { en = 2, de = 3 }',
            "'CCMatrx.tsv' is no table .* are CCMatrix.tsv",
        ),
        ('columns."CCMatrix.tsv" = { en = 2, de = 4 }', r"CCMatrix\.tsv:1: no column 4 among 1, 2, 3; mend"),
        (
            'columns."CCMatrix.tsv" = { fr = 2, de = 3 }',
            r"CCMatrix\.tsv:1: has no columns for en-de among 1",
        ),
    ],
)
def test_columns_that_are_not_there_are_refused(prepare, more, message):
    with pytest.raises(DataError, match=message):
        prepare(more)
