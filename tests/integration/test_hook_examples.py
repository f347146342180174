"""The hooks of docs/data/mixing.md do what the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

from mnmt_data import DrawnPairs, Vocabulary
from mnmt_data.store.vocabulary import train_vocabulary

PAGE = Path(__file__).resolve().parents[2] / "docs" / "data" / "mixing.md"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    draw, path = np.random.default_rng(1), tmp_path_factory.mktemp("vocab") / "vocab.model"
    words = "the house was old and nobody wanted to open that window".split()  # noqa: SIM905
    lines = [" ".join(draw.choice(words, 8)) for _ in range(400)]
    train_vocabulary([*lines, *map(str.upper, lines)], path, kind="bpe", size=380, languages=["de"])
    vocab = Vocabulary.load(path)
    sides = [vocab.encode_sources(lines[:200], target="de"), vocab.encode_ragged(lines[200:])]
    src, tgt = ([side[row].astype(np.int64) for row in range(200)] for side in sides)
    keys = draw.integers(0, 2**63, 200).astype(np.uint64)
    return DrawnPairs(src=src, tgt=tgt, tasks=["en-de"] * 200, keys=keys, vocab=vocab)


@pytest.fixture(scope="module")
def hooks():
    (code,) = re.findall(r"```python\n(def bpe_dropout.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    functions: dict = {}
    exec(code, functions)
    return functions


def texts(vocab, rows):
    return [vocab.decode(row) for row in rows]


def test_bpe_dropout_changes_tokens_and_no_text(pairs, hooks):
    src, tgt = hooks["bpe_dropout"](pairs)
    for before, after in ((pairs.src, src), (pairs.tgt, tgt)):
        assert texts(pairs.vocab, before) == texts(pairs.vocab, after)
        assert sum(map(len, after)) > 1.05 * sum(map(len, before))
    again = hooks["bpe_dropout"](pairs)[0]
    assert all(np.array_equal(*rows) for rows in zip(src, again, strict=True))


def test_capitals_are_a_twentieth(pairs, hooks):
    src, tgt = hooks["capitals"](pairs)
    before, after = texts(pairs.vocab, pairs.src), texts(pairs.vocab, src)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [
        (old, old.upper()) for old, key in zip(before, pairs.keys, strict=True) if key % 20 == 0
    ]
    assert 2 < len(changed) < 25
    assert tgt is pairs.tgt
