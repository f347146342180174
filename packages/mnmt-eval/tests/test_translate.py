from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from table_model import TableModel, TableState
from torch import Tensor

from mnmt_data.ragged import Ragged
from mnmt_data.vocab import TargetTag, Vocabulary, train_vocabulary
from mnmt_eval.errors import EvalError
from mnmt_eval.protocol import EOS, PAD
from mnmt_eval.search import MaxLength, SearchConfig
from mnmt_eval.translate import translate, translate_stream

CONFIG = SearchConfig(beam=2, max_length=MaxLength(ratio=1, extra=2))
MODEL = TableModel(seed=3, vocab_size=8)


class LetterVocabulary:
    """One letter a token, ids from 4."""

    letters = "abc\n"

    def encode_sources(self, lines: Sequence[str], *, target: str) -> Ragged:
        tag = {"xx": 2, "yy": 3}[target]
        words = [[4 + self.letters.index(letter) for letter in line.replace(" ", "")] for line in lines]
        return Ragged.from_rows([[tag, *word, EOS] for word in words])

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.letters[i - 4] for i in ids if i >= 4)


def translated(lines: list[str], *, batch_sentences: int, target: str = "xx") -> list[str]:
    return translate(
        MODEL, LetterVocabulary(), lines, target=target, config=CONFIG, batch_sentences=batch_sentences
    )


texts = st.lists(st.text("abc ", max_size=6), max_size=9)


@given(lines=texts, batch_sentences=st.integers(1, 10))
def test_lines_keep_their_order_whatever_the_batches(lines: list[str], batch_sentences: int) -> None:
    alone = [translated([line], batch_sentences=1)[0] for line in lines]
    assert translated(lines, batch_sentences=batch_sentences) == alone


@given(lines=texts, buffer_sentences=st.integers(1, 10))
def test_a_stream_has_the_translations_of_the_list(lines: list[str], buffer_sentences: int) -> None:
    stream = translate_stream(
        MODEL,
        LetterVocabulary(),
        iter(lines),
        target="xx",
        config=CONFIG,
        batch_sentences=2,
        buffer_sentences=buffer_sentences,
    )
    assert list(stream) == translated(lines, batch_sentences=64)


@given(lines=texts)
def test_blank_lines_have_empty_translations_and_no_translation_has_two_lines(lines: list[str]) -> None:
    for line, translation in zip(lines, translated(lines, batch_sentences=4), strict=True):
        assert line.strip() or translation == ""
        assert "\n" not in translation


def test_a_stream_reads_no_further_than_its_buffer() -> None:
    read = []

    def lines() -> Iterable[str]:
        for line in ("a", "b", "c", "a"):
            read.append(line)
            yield line

    stream = translate_stream(
        MODEL, LetterVocabulary(), lines(), target="xx", config=CONFIG, buffer_sentences=2
    )
    next(stream)
    assert read == ["a", "b"]


class Listening(TableModel):
    """A table that keeps the sources it is given."""

    def __init__(self) -> None:
        super().__init__(seed=3, vocab_size=7)
        self.heard: list[Tensor] = []

    def encode(self, src: Tensor, padding_mask: Tensor) -> TableState:
        self.heard.append(src)
        return super().encode(src, padding_mask)


@pytest.mark.parametrize(
    ("target_tag", "sources"),
    [
        ("prepended", [[3, 5, 6, EOS], [3, 5, EOS, PAD]]),
        ("appended", [[5, 6, 3, EOS], [5, 3, EOS, PAD]]),
        ("none", [[5, 6, EOS], [5, EOS, PAD]]),
    ],
)
def test_the_vocabulary_puts_the_tag_where_the_model_has_read_it(
    tmp_path: Path, target_tag: TargetTag, sources: list[list[int]]
) -> None:
    path = tmp_path / "vocab.model"
    train_vocabulary(["a b", "a b", "a"], path, kind="word", size=8, languages=["xx", "yy"])
    vocab = Vocabulary.load(path, target_tag=target_tag)
    assert [ids.tolist() for ids in vocab.encode(["a", "a b"])] == [[5], [5, 6]]
    model = Listening()
    translate(model, vocab, ["a", "", "a b"], target="xx", config=CONFIG)
    (heard,) = model.heard
    assert heard.dtype == torch.int64
    assert heard.tolist() == sources


def test_the_target_language_chooses_the_tag() -> None:
    lines = ["a", "ab", "abc", "cab", "bc"]
    assert translated(lines, batch_sentences=4) != translated(lines, batch_sentences=4, target="yy")


def test_sentences_are_counted_as_they_are_translated() -> None:
    counted: list[int] = []
    lines = ["a", "", "b", "cc"]
    translate(
        MODEL,
        LetterVocabulary(),
        lines,
        target="xx",
        config=CONFIG,
        batch_sentences=2,
        on_batch=counted.append,
    )
    assert counted == [2, 1]


def test_sizes_must_be_positive() -> None:
    with pytest.raises(EvalError, match=r"`batch_sentences` must be at least 1, but is 0\."):
        translated(["a"], batch_sentences=0)
    with pytest.raises(EvalError, match=r"`buffer_sentences` must be at least 1, but is 0\."):
        translate_stream(MODEL, LetterVocabulary(), ["a"], target="xx", config=CONFIG, buffer_sentences=0)
