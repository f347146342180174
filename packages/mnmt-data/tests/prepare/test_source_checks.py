"""`prepare` warns in one line of sides that are swapped, shifted, unrelated or foreign."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.filters.alignment import OFFSETS
from mnmt_data.filters.side_languages import SideLanguages
from mnmt_data.prepare import stages
from mnmt_data.prepare.inputs import Source
from mnmt_data.prepare.source_checks import SourceSample, source_warnings
from mnmt_data.readers import open_reader, text_pairs

STUDY = """
name = "checked"
[data]
tasks = ["{tasks}"]
corpus = "corpus"
dev_sentences = 5
test_sentences = 5
[data.vocab]
kind = "word"
size = 20000
{more}
"""


@pytest.fixture
def prepare(tmp_path, cli):
    """Prepares a corpus of {file: lines}: the warnings of `prepare`, which those of `inspect` equal."""

    def run(files, *arguments, tasks="en-de", more=""):
        (tmp_path / "corpus").mkdir()
        for name, lines in files.items():
            (tmp_path / "corpus" / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (tmp_path / "study.toml").write_text(STUDY.format(tasks=tasks, more=more))
        status, out, err = cli("prepare", "study.toml", "--out", "out", *arguments)
        assert status == 0, err
        warnings = [line for line in err.splitlines() if line.startswith("warning: ")]
        assert [line for line in out.splitlines() if line.startswith("warning: ")] == warnings
        described = json.loads(cli("inspect", "out/data", "--json")[1])
        assert [f"warning: {line}" for line in described["warnings"]] == warnings
        return warnings

    return run


def train(src, tgt, task="en-de"):
    one, other = task.split("-")
    return {f"train.{task}.{one}": src, f"train.{task}.{other}": tgt}


BOTH = "warning: corpus/train.en-de.en and corpus/train.en-de.de: "


def test_good_text_has_no_warning(prepare, english_german):
    assert prepare(train(*english_german(300))) == []


def test_swapped_sides_are_named(prepare, english_german):
    english, german = english_german(300)
    assert prepare(train(german, english)) == [
        f"{BOTH}the sides are swapped: in 100% of a sample the source is in de and the target in en; "
        "exchange them"
    ]


def test_swapped_columns_of_a_table_are_named(prepare, english_german):
    lines = [f"{german}\t{english}" for english, german in zip(*english_german(300), strict=True)]
    (warning,) = prepare({"train.en-de.tsv": lines})
    assert warning.startswith("warning: corpus/train.en-de.tsv: the sides are swapped: in 100% of a sample")


def test_a_shift_is_named_with_its_place(prepare, english_german):
    english, german = english_german(600)
    assert prepare(train([*english[:300], *english[301:]], german[:-1])) == [
        f"{BOTH}the sides are shifted by a line from about pair 301 on; "
        "the source lacks a line there, or the target has a line too many"
    ]


def test_a_shifted_test_set_is_named(prepare, english_german):
    test = english_german(200, seed=2)
    files = train(*english_german(300)) | {"test.en-de.en": test[0][:-2], "test.en-de.de": test[1][2:]}
    shifted, templates = prepare(files)
    assert shifted == (
        "warning: corpus/test.en-de.en and corpus/test.en-de.de: the sides are shifted by 2 lines "
        "from the first pair on; the target lacks 2 lines there, or the source has 2 lines too many"
    )
    assert templates.startswith("warning: en-de: ")


def test_unrelated_sides_are_named(prepare, english_german):
    english, german = english_german(600)
    assert prepare(train(sorted(english), german)) == [
        f"{BOTH}the sides are no translations of each other from the first pair on; mend their order"
    ]


def test_a_side_in_another_language_is_named(prepare, english_german):
    warnings = prepare(train(*english_german(300), task="en-fr"), tasks="en-fr")
    assert warnings == [
        "warning: corpus/train.en-fr.fr: the target is in de and not in fr in 100% of a sample; "
        "give the text of en-fr"
    ]


def test_workers_and_blocks_change_no_warning(prepare, english_german, monkeypatch):
    english, german = english_german(900)
    files = train([*english[:450], *english[451:]], german[:-1])
    monkeypatch.setattr(text_pairs, "BLOCK_PAIRS", 200)
    monkeypatch.setattr(stages, "STARTING_PAIRS", 0)
    (warning,) = prepare(files, "--jobs", "2")
    assert "shifted by a line from about pair 451 on" in warning


def test_made_up_sentences_of_one_length_are_not_unrelated(prepare):
    draw = random.Random(1)
    vocabulary = ["".join(draw.choices("bdfgaeiou", k=4)) for _ in range(99)]
    src, tgt = ([" ".join(draw.choices(vocabulary, k=8)) for _ in range(600)] for _ in range(2))
    assert prepare(train(src, tgt)) == []


def test_synthetic_languages_are_not_looked_at(tmp_path, cli, monkeypatch):
    monkeypatch.setattr(SourceSample, "of", None)
    study = (
        'name = "made"\n[data]\ntasks = ["xx-aa"]\ndev_sentences = 5\n[data.synthetic]\nlanguages = ["aa"]\n'
    )
    study += "concepts = 50\nwords_per_sentence = 9\nsyllable_inventory = 16\ntrain_sentences = 300\n"
    study += "dev_sentences = 40\ntest_sentences = 50\n[data.vocab]\nkind = 'word'\nsize = 100\n"
    (tmp_path / "study.toml").write_text(study)
    status, out, err = cli("prepare", "study.toml", "--out", "out")
    assert status == 0, err
    assert "warning" not in out + err


@given(st.lists(st.lists(st.integers(-20, 20), min_size=len(OFFSETS), max_size=len(OFFSETS)), max_size=9))
def test_samples_survive_their_file(gains):
    sample = SourceSample(
        rows=np.arange(len(gains)),
        gains=np.array(gains, dtype=np.float32).reshape(-1, len(OFFSETS)).T / 10,
        languages=SideLanguages(passages=2, swapped=1, foreign=({"de": 2}, {})),
    )
    again = SourceSample.from_dict(json.loads(json.dumps(sample.to_dict())))
    np.testing.assert_array_equal(again.rows, sample.rows)
    np.testing.assert_allclose(again.gains, sample.gains, atol=1e-6)
    assert again.languages == sample.languages


@pytest.mark.parametrize(("counts", "is_said"), [(3, False), (4, True)])
@pytest.mark.parametrize("what", ["swapped", "foreign"])
def test_few_passages_are_no_warning(tmp_path, what, counts, is_said):
    (tmp_path / "x.tsv").write_text("a\tA\n", encoding="utf-8")
    found = {"swapped": counts} if what == "swapped" else {"foreign": ({"fr": counts}, {})}
    blocks = [
        SourceSample(
            rows=np.arange(1),
            gains=np.zeros((len(OFFSETS), 1), dtype=np.float32),
            languages=SideLanguages(passages=passages, **more),
        )
        for passages, more in ((counts, found), (0, {}))
    ]
    reader = open_reader(str(tmp_path / "x.tsv"), "en-de")
    source = Source(split="train", task="en-de", number=0, reader=reader)
    assert len(list(source_warnings(source, blocks))) == is_said
