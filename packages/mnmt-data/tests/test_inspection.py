import json

import numpy as np
import pytest

from mnmt_data.corpus import Bitext, write_bitext
from mnmt_data.inspection import describe, table
from mnmt_data.prepared import Prepared, shard_path, text_folder
from mnmt_data.shards import Ragged, write_shard


def rows(*rows):
    return Ragged.from_rows([np.array(row, dtype=np.uint16) for row in rows])


@pytest.fixture
def data(tmp_path):
    """Two training pairs, an empty dev set, three test pairs."""
    (tmp_path / "shards").mkdir()
    pairs = {
        "train": (rows([3, 5, 1], [3, 6, 5, 1]), rows([5, 2, 1], [2, 1])),
        "dev": (rows(), rows()),
        "test": (rows([3, 1], [3, 5, 1], [3, 6, 1]), rows([5, 1], [6, 5, 6, 1], [1])),
    }
    for split, (src, tgt) in pairs.items():
        write_shard(shard_path(tmp_path, split, "en-de"), src, tgt)
    text = Bitext(src=["one", "two", "three"], tgt=["eins", "zwei", "drei"])
    write_bitext(text_folder(tmp_path), "test", "en-de", text)
    counts = {
        split: {"en-de": {"pairs": len(src), "src_tokens": src.values.size, "tgt_tokens": tgt.values.size}}
        for split, (src, tgt) in pairs.items()
    }
    description = {
        "tasks": ["en-de"],
        "vocabulary": {"size": 7},
        "counts": counts,
        "dropped": {"en-de": {"empty": 4, "too long": 1234}},
        "irreducible": {},
    }
    return Prepared(folder=tmp_path, description=description)


def test_description_measures_every_split(data):
    described = describe(data, samples=2)
    assert described["splits"]["train"]["en-de"] == {
        "pairs": 2,
        "src_tokens": 7,
        "tgt_tokens": 5,
        "mean_length": 2.5,
        "longest": 3,
        "unknown": 2 / 5,
    }
    assert described["splits"]["dev"]["en-de"]["longest"] == 0
    assert described["splits"]["test"]["en-de"]["mean_length"] == pytest.approx(7 / 3)
    assert described["samples"] == {
        "en-de": [{"src": "one", "tgt": "eins"}, {"src": "two", "tgt": "zwei"}],
    }
    assert json.loads(json.dumps(described)) == described


def test_table_shows_splits_filters_and_samples(data):
    lines = table(describe(data, samples=1)).splitlines()
    assert lines[1].split() == ["train", "en-de", "2", "5", "2.5", "3", "40.00%"]
    assert lines[4] == "dropped from en-de: 4 empty, 1,234 too long"
    assert lines[-2:] == ["en-de: one", "       eins"]
