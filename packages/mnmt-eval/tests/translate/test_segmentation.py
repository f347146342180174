from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from letters import LetterVocabulary

from mnmt_eval.translate.segmentation import encode_parts, split_in_half, split_sentences

VOCAB = LetterVocabulary()


@given(text=st.text("abc., ", max_size=200).filter(str.strip), max_source=st.integers(8, 30))
def test_parts_have_all_the_tokens_and_none_is_too_long(text: str, max_source: int) -> None:
    parts = encode_parts(VOCAB, text, target="xx", max_source=max_source)
    assert all(2 < len(part) <= max_source for part in parts)
    assert [part[0] for part in parts] == [2] * len(parts)
    (whole,) = VOCAB.encode_sources([text], target="xx")
    assert [token for part in parts for token in part[1:-1].tolist()] == whole[1:-1].tolist()


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
    ],
)
def test_a_text_is_cut_where_sentences_end(cut: str) -> None:
    assert "|".join(split_sentences(cut.replace("|", ""))) == cut


@pytest.mark.parametrize(
    "cut",
    [
        "eins zwei drei, |vier fünf sechs",
        "3,14159 |27,18281",
        "今天天气很好，|我们去",
        "今天天气很好|我们去公园吧",
        "aaaa|bbbb",
        "A, bcdefghijkl|mnopqrstuvw xyz",
        "a，|b",
    ],
)
def test_a_sentence_is_cut_in_two_where_a_clause_or_a_word_ends(cut: str) -> None:
    assert "|".join(split_in_half(cut.replace("|", ""))) == cut


@pytest.mark.parametrize(
    "text", ["यह पहला वाक्य है। |यह दूसरा है।", "هل هذا سؤال؟ |نعم۔", "ይህ ነው። |ሌላ ነው።", "Այո։ |Ոչ։"]
)
def test_sentences_end_as_their_script_ends_them(text: str) -> None:
    assert "|".join(split_sentences(text.replace("|", ""))) == text


@given(text=st.text("ab.。, \u2028", min_size=2, max_size=30))
def test_both_halves_have_something(text: str) -> None:
    left, right = split_in_half(text)
    assert left
    assert right
    assert left + right == text
