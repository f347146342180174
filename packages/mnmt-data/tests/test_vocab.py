import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.clean import normalise
from mnmt_data.errors import DataError
from mnmt_data.vocab import EOS, PAD, UNK, Vocabulary, tag_of, train_vocabulary

WORDS = ["house", "houses", "tree", "trees", "Haus", "Häuser", "Baum", "Bäume", "房子", "树木", "，", "。"]


def corpus():
    draw = random.Random(1)
    return [" ".join(draw.choices(WORDS, k=6)) for _ in range(400)]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def subwords(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param) / "vocab.model"
    train_vocabulary(corpus(), path, kind=request.param, size=320, languages=["de", "zh"])
    return Vocabulary.load(path)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    path = tmp_path_factory.mktemp("word") / "vocab.model"
    train_vocabulary(corpus(), path, kind="word", size=100, languages=["de", "zh"])
    return Vocabulary.load(path)


# ▁ is how SentencePiece writes a space.
@given(text=st.text(st.characters(exclude_characters="▁", exclude_categories=["Cs"])).map(normalise))
def test_text_comes_back_from_its_ids(subwords, text):
    (ids,) = subwords.encode([text])
    assert subwords.decode(ids) == text
    assert UNK not in ids


@pytest.mark.parametrize("text", ["Ｈａｕｓ，房子。", "ﬁ … ½ ™", "<2de> </s> <pad>"])
def test_text_is_not_changed_and_cannot_hold_special_ids(subwords, text):
    (ids,) = subwords.encode([text])
    assert subwords.decode(ids) == text
    assert min(ids) > subwords.tag("zh")


def test_special_ids_come_first(subwords, words):
    for vocab in (subwords, words):
        assert (PAD, EOS, UNK) == (0, 1, 2)
        assert (vocab.tag("de"), vocab.tag("zh")) == (3, 4)
        assert vocab.decode([vocab.tag("de"), *vocab.encode(["tree"])[0], EOS, PAD, PAD]) == "tree"


def test_every_word_is_one_id(words):
    (ids,) = words.encode([" ".join(WORDS)])
    assert len(set(ids.tolist())) == len(WORDS)
    assert words.size == 5 + len(WORDS)
    assert words.decode(ids) == " ".join(WORDS)
    assert words.encode(["bush tree"])[0].tolist() == [UNK, *words.encode(["tree"])[0]]


def test_ragged_has_tag_and_end(words):
    lines = ["house tree", "", "Baum"]
    plain = words.encode(lines)
    tagged = words.encode_ragged(lines, tag=words.tag("zh"))
    assert [row.tolist() for row in tagged] == [[4, *ids, EOS] for ids in plain]
    assert [row.tolist() for row in words.encode_ragged(lines)] == [[*ids, EOS] for ids in plain]
    assert tagged.values.dtype == np.uint16
    assert len(words.encode_ragged([])) == 0


def test_blocks_of_lines_are_joined(words, monkeypatch):
    lines = corpus()[:25]
    whole = words.encode_ragged(lines, tag=3)
    monkeypatch.setattr("mnmt_data.vocab.BLOCK_LINES", 10)
    parts = words.encode_ragged(lines, tag=3)
    assert parts.values.tolist() == whole.values.tolist()
    assert parts.offsets.tolist() == whole.offsets.tolist()


def test_unknown_tag_is_told(words):
    assert tag_of("fr") == "<2fr>"
    with pytest.raises(DataError, match="no tag <2fr>; prepare a task into fr"):
        words.tag("fr")


def test_size_that_does_not_suit_is_told(tmp_path):
    with pytest.raises(ValueError, match=r"^`size` 20 does not suit a unigram vocabulary of this text: .*\S"):
        train_vocabulary(corpus(), tmp_path / "vocab.model", kind="unigram", size=20, languages=["de"])
    assert not (tmp_path / "vocab.model").exists()


def test_missing_and_broken_models_are_named(tmp_path):
    path = tmp_path / "vocab.model"
    with pytest.raises(DataError, match=r"vocab\.model: no such vocabulary; `mnmt-data prepare` makes it"):
        Vocabulary.load(path)
    path.write_bytes(b"not a model")
    with pytest.raises(DataError, match=r"vocab\.model: not a SentencePiece model"):
        Vocabulary.load(path)
