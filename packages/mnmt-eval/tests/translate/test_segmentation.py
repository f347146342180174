from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from mnmt_data.store import Ragged, Vocabulary, train_vocabulary
from mnmt_eval.search.protocol import EOS
from mnmt_eval.translate.boundaries import split_sentences
from mnmt_eval.translate.segmentation import encode_parts

FAMILY, FLAG = "👨‍👩‍👧‍👦", "🇩🇪"
KNOWN = ["Select the cells, then click OK.", "今天天气很好，我们去公园。", "ภาษาไทย", "1,234.5"]
LEAST = 8

pieces = st.one_of(
    st.text(max_size=8),
    st.sampled_from([*KNOWN, FAMILY, FLAG, "e\u0301", "\u200b", "\u00a0", "، ", "a" * 40, "." * 30, " \t"]),
)
texts = st.lists(pieces, max_size=40).map("".join).filter(str.strip)


class CharacterVocabulary:
    """A token for each character but spaces, a tag and `</s>`: small enough to see through."""

    def encode_sources(self, lines: Sequence[str], *, target: str) -> Ragged:
        rows = [[2, *map(ord, "".join(line.split())), EOS] for line in lines]
        return Ragged.from_rows([np.array(row) for row in rows])

    def decode(self, ids: object) -> str:
        raise NotImplementedError


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def vocab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    path = tmp_path_factory.mktemp("vocab") / "vocab.model"
    train_vocabulary(KNOWN * 50, path, kind=request.param, size=360, languages=["xx"])
    return Vocabulary.load(path)


def parts_of(text: str, room: int) -> str:
    """The parts of at most `room` characters, with a bar between them."""
    parts = encode_parts(CharacterVocabulary(), text, target="xx", max_source=room + 2)
    return "|".join(part.text for part in parts)


@given(text=texts, max_source=st.integers(LEAST, 40))
@example(text="字" * 100_000, max_source=90)
@example(text="e" + "\u0301" * 1000, max_source=LEAST)
@example(text="0123456789" * 1000, max_source=20)
@example(text=FAMILY * 500, max_source=30)
@example(text="a\u00a0" * 1000 + "a", max_source=12)
@example(text=",.;" * 1000, max_source=12)
def test_nothing_is_lost_and_no_part_is_too_long(vocab: Vocabulary, text: str, max_source: int) -> None:
    parts = encode_parts(vocab, text, target="xx", max_source=max_source)
    assert "".join("".join(part.text.split()) for part in parts) == "".join(text.split())
    encoded = vocab.encode_sources([part.text for part in parts], target="xx")
    assert [part.ids.tolist() for part in parts] == [ids.tolist() for ids in encoded]
    assert all(0 < len(part.ids) <= max_source for part in parts)


@given(text=texts, room=st.integers(12, 40))
def test_clusters_and_numbers_that_fit_are_whole(text: str, room: int) -> None:
    parts = encode_parts(CharacterVocabulary(), text, target="xx", max_source=room + 2)
    before, after = (
        Counter(units_of(text)),
        Counter(chain.from_iterable(units_of(part.text) for part in parts)),
    )
    cut = before - after
    assert all(len(unit) > room for unit in cut)


def units_of(text: str) -> list[str]:
    """The numbers, and the characters of several code points, of a text."""
    return [unit for unit in regex.findall(r"\d+(?:[.,]\d+)*|\X", text) if len(unit) > 1]


@given(text=texts, room=st.integers(12, 60))
def test_a_sentence_that_fits_is_a_part(text: str, room: int) -> None:
    parts = encode_parts(CharacterVocabulary(), text, target="xx", max_source=room + 2)
    sentences = [sentence.strip() for sentence in split_sentences(text)]
    fitting = [sentence for sentence in sentences if len("".join(sentence.split())) <= room]
    texts_of_parts = [part.text for part in parts]
    assert all(sentence in texts_of_parts for sentence in fitting)


@pytest.mark.parametrize(
    ("cut", "room"),
    [
        ("eins zwei drei, |vier fünf sechs sieben", 25),
        ("eins zwei |drei vier", 12),
        ("aa bb cc, |dd ee ff gg hh ii jj kk", 16),  # a clause's end is worth unequal parts
        ("今天天气很好，|我们去公园然后回家", 12),
        ("今天天气很好我们|去公园然后回家了", 12),
        ("今天天气很好|1234567|我们去公园", 8),
        ("aaaaaaaa|aaaaaaaa", 11),
        ("http://example.|org/a/b/c/d/e/f", 18),
        ("قال الرجل، |ثم ذهب إلى بيته", 16),
        (f"{FAMILY}{FAMILY}|{FAMILY}{FAMILY}", 16),
        ("e\u0301e\u0301e\u0301|e\u0301e\u0301e\u0301", 8),
        ("ไปไปไป|ไปไปไป", 7),
    ],
)
def test_a_text_is_cut_at_the_best_places(cut: str, room: int) -> None:
    assert "|".join(part.strip() for part in parts_of(cut.replace("|", ""), room).split("|")) == "|".join(
        part.strip() for part in cut.split("|")
    )


@pytest.mark.parametrize(
    ("text", "room", "joints"),
    [
        ("eins zwei. drei vier fünf", 9, ["spaced", "spaced", "spaced"]),
        ("今天天气很好我们去公园", 8, ["spaced", "run"]),
        ("aaaaaaaaaaaaaaa", 11, ["spaced", "word"]),
        ("eins zweizweizwei", 8, ["spaced", "spaced", "word"]),
    ],
)
def test_a_part_knows_the_place_before_it(text: str, room: int, joints: list[str]) -> None:
    parts = encode_parts(CharacterVocabulary(), text, target="xx", max_source=room + 2)
    assert [part.joint for part in parts] == joints


@pytest.mark.parametrize(
    "cut",
    [
        "Eins zwei. |Drei, vier, fünf.",
        "Er sagte: „Ja!“ |Sie sagte nein.",
        'He said "Yes." |She said no (to it?). |Or not… |I forget.',
        "Pi is 3.14159 or so.",
        "Das ist z. B. ein Haus der U.S. Army.",
        "今天天气很好。|我们去公园吧！”|好。",
        "  eins.  |zwei  ",
        "eins",
        "यह पहला वाक्य है। |यह दूसरा है।",
        "هل هذا سؤال؟ |نعم۔",
        "ይህ ነው። |ሌላ ነው።",
        "Այո։ |Ոչ։",
    ],
)
def test_a_text_is_cut_where_sentences_end(cut: str) -> None:
    assert "|".join(split_sentences(cut.replace("|", ""))) == cut
