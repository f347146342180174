import json
import unicodedata
from dataclasses import replace

import pytest

from mnmt_data.cli.inspect import WIDTH, describe, table
from mnmt_data.store.corpus_folder import Bitext, write_bitext
from mnmt_data.store.description import PreparedDescription, SplitInfo
from mnmt_data.store.prepared import PreparedData, text_folder
from mnmt_data.study import structure

COUNTS = {
    "src_tokens": 7,
    "tgt_tokens": 5,
    "longest": 6,
    "longest_side": 4,
    "byte_tokens": 1,
    "unknown_tokens": 2,
}
NOTHING = {"pairs": 0, "src_tokens": 0, "tgt_tokens": 0, "longest": 0, "longest_side": 0} | {
    "byte_tokens": 0,
    "unknown_tokens": 0,
}
COVERAGE = {"tokens_per_word": 1.25, "tokens_per_character": 0.2501, "byte_share": 0.01, "unknown_share": 0.5}


@pytest.fixture
def data(tmp_path):
    """Two training pairs, an empty dev set, three test pairs, one of them long."""
    text = Bitext(src=["one", "two", "three " * 40], tgt=["eins", "zwei", "房子" * 60])
    write_bitext(text_folder(tmp_path), "test", "en-de", text)
    samples = {"empty": [["", "x"], ["", "y"], ["", "z"]], "too long": [["a" * 200, "房" * 200]]}
    description = {
        "tasks": ["en-de"],
        "zero_shot": [],
        "vocabulary": {"size": 7},
        "counts": {
            "train": {"en-de": {"pairs": 2, **COUNTS}},
            "dev": {"en-de": NOTHING},
            "a_long_name_of_a_test_set": {"en-de": {"pairs": 1_234_567_890, **COUNTS}},
        },
        "coverage": {"en": COVERAGE, "de": COVERAGE},
        "filters": {"en-de": {"read": 2000, "counts": {"empty": 4, "too long": 1234}, "samples": samples}},
        "irreducible": {},
    }
    return PreparedData(folder=tmp_path, description=structure(description, PreparedDescription, where=""))


def test_description_gives_rates_of_every_split(data):
    described = describe(data, samples=2)
    assert described["splits"]["train"]["en-de"] == {
        "pairs": 2,
        **COUNTS,
        "mean_length": 2.5,
        "unknown": 2 / 5,
        "bytes": 1 / 5,
    }
    assert described["splits"]["dev"]["en-de"]["mean_length"] == 0
    assert described["samples"] == {"en-de": [{"src": "one", "tgt": "eins"}, {"src": "two", "tgt": "zwei"}]}
    assert described["filters"]["en-de"]["samples"]["empty"] == [["", "x"], ["", "y"]]
    assert described["coverage"]["de"] == COVERAGE
    assert json.loads(json.dumps(described)) == described


def test_table_shows_splits_coverage_filters_and_samples(data):
    lines = table(describe(data, samples=1)).splitlines()
    assert lines[1].split() == ["train", "en-de", "2", "7", "5", "2.5", "4", "40.00%", "20.00%"]
    assert f"vocabulary: {data.description.vocabulary.size:,} ids" in lines
    assert lines[8].split() == ["en", "1.25", "0.250", "50.00%", "1.00%"]
    at = lines.index("left out of en-de: 1,238 of 2,000 training pairs")
    assert lines[at + 1].split() == ["4", "empty"]
    assert [line.strip() for line in lines[at + 2 : at + 4]] == ["", "x"]
    assert lines[at + 4].split() == ["1,234", "too", "long"]
    assert lines[-2:] == ["en-de: one", "       eins"]


def test_table_says_what_is_never_trained_on(data):
    text = Bitext(src=["eins"], tgt=["un"])
    write_bitext(text_folder(data.folder), "test", "de-fr", text)
    counts = {**data.description.counts, "test": {"de-fr": SplitInfo(pairs=1, **COUNTS)}}
    description = replace(data.description, zero_shot=("de-fr",), counts=counts)
    described = describe(PreparedData(folder=data.folder, description=description), samples=1)
    assert (described["tasks"], described["zero_shot"]) == (["en-de"], ["de-fr"])
    assert described["samples"]["de-fr"] == [{"src": "eins", "tgt": "un"}]
    lines = table(described).splitlines()
    assert lines[4].split()[:3] == ["test", "de-fr", "1"]
    assert lines[5:7] == ["", "never trained on: de-fr"]
    assert lines[-2:] == ["de-fr: eins", "       un"]


def test_table_fits_its_width(data):
    lines = table(describe(data, samples=3)).splitlines()
    widths = [sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line) for line in lines]
    assert WIDTH - 1 <= max(widths) <= WIDTH
    assert sum(line.endswith("…") for line in lines) == 4
