import io
import random
from typing import get_args
from unittest.mock import patch

import numpy as np
import pytest
import sentencepiece as spm
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.filters import normalise
from mnmt_data.store.vocabulary import EOS, PAD, UNK, TargetTag, Vocabulary, tag_of, train_vocabulary

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
    tagged = words.encode_sources(lines, target="zh")
    assert [row.tolist() for row in tagged] == [[4, *ids, EOS] for ids in plain]
    assert [row.tolist() for row in words.encode_ragged(lines)] == [[*ids, EOS] for ids in plain]
    assert tagged.values.dtype == np.uint16
    assert len(words.encode_ragged([])) == len(words.encode_sources([], target="zh")) == 0


@given(
    lines=st.lists(st.lists(st.sampled_from(WORDS)).map(" ".join), max_size=9),
    target=st.sampled_from(["de", "zh"]),
    target_tag=st.sampled_from(get_args(TargetTag)),
    block=st.integers(1, 4),
)
def test_the_tag_has_its_place_in_every_source(words, subwords, lines, target, target_tag, block):
    for vocab in (words, subwords):
        placing = Vocabulary(vocab._processor, target_tag=target_tag)
        tag = vocab.tag(target)
        around = {"prepended": ([tag], []), "appended": ([], [tag]), "none": ([], [])}
        first, last = around[target_tag]
        with patch("mnmt_data.store.vocabulary.BLOCK_LINES", block):
            sources = [row.tolist() for row in placing.encode_sources(lines, target=target)]
        assert sources == [[*first, *ids, *last, EOS] for ids in vocab.encode(lines)]


@pytest.mark.parametrize("target_tag", get_args(TargetTag))
def test_a_language_without_a_tag_is_told_wherever_tags_are(words, target_tag):
    with pytest.raises(DataError, match="no tag <2fr>; prepare a task into fr"):
        Vocabulary(words._processor, target_tag=target_tag).encode_sources([], target="fr")


def test_unknown_tag_is_told(words):
    assert tag_of("fr") == "<2fr>"
    with pytest.raises(DataError, match="no tag <2fr>; prepare a task into fr"):
        words.tag("fr")


def test_size_that_does_not_suit_is_told(tmp_path):
    with pytest.raises(
        ValueError,
        match=r"^`size` 20 does not suit a unigram vocabulary of this text: it must be at least \d+",
    ):
        train_vocabulary(corpus(), tmp_path / "vocab.model", kind="unigram", size=20, languages=["de"])
    assert not (tmp_path / "vocab.model").exists()


def test_bytes_spell_what_has_no_piece_unless_told_otherwise(tmp_path, subwords):
    path = tmp_path / "vocab.model"
    train_vocabulary(corpus(), path, kind="bpe", size=80, languages=["de"], byte_fallback=False)
    without = Vocabulary.load(path)
    assert UNK in without.encode(["Ω"])[0]
    assert not without.byte_tokens.any()
    ids = subwords.encode(["Ω"])[0]
    assert subwords.byte_tokens[ids[-2:]].all()
    assert subwords.byte_tokens.sum() == 256


@given(text=st.text(st.sampled_from("<2dezh>/s pad unk▁"), max_size=20))
def test_no_text_makes_a_tag_or_an_end(subwords, text):
    ids = subwords.encode([text, f"<2de>{text}</s>"])
    assert all(token >= 5 for row in ids for token in row)


def test_models_with_other_special_ids_are_named(tmp_path):
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (tmp_path / "vocab.model").write_bytes(model.getvalue())
    with pytest.raises(DataError, match=r"must be 0, 1, 2, but are \(-1, 2, 0\); name it as `path` in"):
        Vocabulary.load(tmp_path / "vocab.model")


def test_missing_and_broken_models_are_named(tmp_path):
    path = tmp_path / "vocab.model"
    with pytest.raises(DataError, match=r"vocab\.model: no such vocabulary; `mnmt-data prepare` makes it"):
        Vocabulary.load(path)
    path.write_bytes(b"not a model")
    with pytest.raises(DataError, match=r"vocab\.model: not a SentencePiece model"):
        Vocabulary.load(path)
