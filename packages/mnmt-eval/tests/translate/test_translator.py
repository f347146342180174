from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from letters import LetterVocabulary
from table_model import TableModel, TableState
from torch import Tensor

from mnmt_data.store import TargetTag, Vocabulary, train_vocabulary
from mnmt_eval.errors import EvalError
from mnmt_eval.search import LengthPenalty, MaxLength, SearchConfig, search
from mnmt_eval.search.protocol import EOS, PAD
from mnmt_eval.translate import SourceLine, TorchEngine, Translation, Translator, translate

CONFIG = SearchConfig(beam=2, max_length=MaxLength(ratio=1, extra=2))
MODEL = TableModel(seed=3, vocab_size=10)
ENGINE = TorchEngine(model=MODEL, config=CONFIG)
VOCAB = LetterVocabulary()

texts = st.lists(st.text("abc ", max_size=6), max_size=9)


def translated(lines: list[str], *, batch_tokens: int = 4096, target: str = "xx") -> list[Translation]:
    return translate(ENGINE, VOCAB, lines, target=target, batch_tokens=batch_tokens)


def translator(**options: int) -> Translator:
    return Translator(engine=ENGINE, vocab=VOCAB, **options)


def streamed(lines: Iterable[SourceLine], **options: int) -> list[tuple[SourceLine, Translation]]:
    return list(chain.from_iterable(translator(**options).translate(lines)))


@settings(max_examples=20)
@given(lines=texts, batch_tokens=st.integers(1, 40))
def test_lines_keep_their_order_whatever_the_batches(lines: list[str], batch_tokens: int) -> None:
    alone = [translated([line])[0] for line in lines]
    assert translated(lines, batch_tokens=batch_tokens) == alone


@settings(max_examples=20)
@given(
    lines=st.lists(st.tuples(st.text("abc ", max_size=6), st.sampled_from(["xx", "yy"])), max_size=9),
    window_lines=st.integers(1, 10),
)
def test_a_stream_of_several_languages_has_the_translations_of_each_line_alone(
    lines: list[tuple[str, str]], window_lines: int
) -> None:
    sources = [SourceLine(text=text, target=target) for text, target in lines]
    stream = streamed(sources, batch_tokens=20, window_lines=window_lines)
    assert stream == [(line, *translated([line.text], target=line.target)) for line in sources]


@given(lines=texts)
def test_blank_lines_have_empty_translations_and_no_translation_has_two_lines(lines: list[str]) -> None:
    for line, translation in zip(lines, translated(lines), strict=True):
        assert (translation.parts == 0) == (not line.strip())
        assert translation.parts or (translation.text, translation.score) == ("", 0.0)
        assert "\n" not in translation.text


def test_scores_and_n_best_are_those_of_the_search() -> None:
    config = SearchConfig(
        beam=3, n_best=2, length_penalty=LengthPenalty(kind="power", alpha=1.0), max_length=CONFIG.max_length
    )
    (result,) = search(MODEL, torch.tensor([[2, 4, 5, EOS]]), config)
    (translation,) = translate(TorchEngine(model=MODEL, config=config), VOCAB, ["ab"], target="xx")
    assert [c.score for c in translation.n_best] == [h.score for h in result]
    assert [c.log_prob for c in translation.n_best] == [h.log_prob for h in result]
    assert [c.text for c in translation.n_best] == [VOCAB.decode(h.tokens).replace("\n", " ") for h in result]
    assert (translation.text, translation.score) == (translation.n_best[0].text, result[0].score)


def test_a_translation_that_the_maximal_length_cuts_off_is_truncated() -> None:
    lines = ["a", "ab", "abc", "b", "c", "ca"]
    short = SearchConfig(max_length=MaxLength(ratio=0, extra=2))
    for line, translation in zip(
        lines, translate(TorchEngine(model=MODEL, config=short), VOCAB, lines, target="xx"), strict=True
    ):
        sources = torch.tensor(VOCAB.encode_sources([line], target="xx")[0])[None]
        ((best,),) = search(MODEL, sources, short)
        assert translation.truncated == (best.tokens[-1] != EOS)
    assert {
        t.truncated for t in translate(TorchEngine(model=MODEL, config=short), VOCAB, lines, target="xx")
    } == {False, True}


def test_a_line_that_is_too_long_is_the_translations_of_its_parts() -> None:
    line = "abc. abcabc, cbacba."
    (whole,) = translate(ENGINE, VOCAB, [line], target="xx", max_source=14)
    parts = translated(["abc.", "abcabc,", "cbacba."])
    assert whole.parts == 3
    assert whole.text == " ".join(part.text for part in parts if part.text)
    assert whole.score == pytest.approx(sum(part.score for part in parts) / 3)
    assert whole.n_best[0].log_prob == pytest.approx(sum(part.n_best[0].log_prob for part in parts))


def test_a_stream_reads_no_further_than_its_window() -> None:
    read = []

    def lines() -> Iterator[SourceLine]:
        for text in ("a", " ", "b", "c", "a"):
            read.append(text)
            yield SourceLine(text=text, target="xx")

    stream = (pair for group in translator(window_lines=2).translate(lines()) for pair in group)
    next(stream)
    assert read == ["a", " "]


def test_a_window_of_blank_lines_is_answered_before_more_is_read() -> None:
    def lines() -> Iterator[SourceLine]:
        yield SourceLine(text=" ", target="xx")
        raise AssertionError("read too far")

    group = next(translator(window_lines=1).translate(lines()))
    assert [translation.text for _, translation in group] == [""]


def test_what_comes_before_a_line_that_cannot_be_read_is_translated() -> None:
    def lines() -> Iterator[SourceLine]:
        yield SourceLine(text="a", target="xx")
        yield SourceLine(text="b", target="xx")
        raise EvalError("line 3")

    ready = translator().translate(lines())
    assert [line.text for line, _ in next(ready)] == ["a", "b"]
    with pytest.raises(EvalError, match="line 3"):
        next(ready)


class Listening(TableModel):
    """A table that keeps the sources it is given, and has room for so many at a time."""

    def __init__(self, *, room: int = 100) -> None:
        super().__init__(seed=3, vocab_size=10)
        self.heard: list[Tensor] = []
        self.room = room

    def encode(self, src: Tensor, padding_mask: Tensor) -> TableState:
        if src.numel() > self.room:
            raise torch.OutOfMemoryError("out of memory")
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
    model.table = model.table[..., :7]
    translate(TorchEngine(model=model, config=CONFIG), vocab, ["a", "", "a b"], target="xx")
    (heard,) = model.heard
    assert heard.dtype == torch.int64
    assert heard.tolist() == sources


def test_a_batch_has_at_most_so_many_tokens_with_its_padding() -> None:
    model = Listening()
    translate(
        TorchEngine(model=model, config=CONFIG),
        VOCAB,
        ["a", "abcabc", "b", "abc", "c"],
        target="xx",
        batch_tokens=9,
    )
    assert [tuple(src.shape) for src in model.heard] == [(1, 8), (1, 5), (3, 3)]


def test_a_batch_that_does_not_fit_into_memory_is_halved() -> None:
    lines = ["a", "b", "c", "ab", "bc"]
    config = SearchConfig(beam=1, max_length=CONFIG.max_length)
    expected = translate(TorchEngine(model=MODEL, config=config), VOCAB, lines, target="xx")
    model = Listening(room=8)
    assert translate(TorchEngine(model=model, config=config), VOCAB, lines, target="xx") == expected
    with pytest.raises(EvalError, match=r"a source of 9 tokens does not fit into memory; .*`max_source`"):
        translate(TorchEngine(model=model, config=config), VOCAB, ["abcabca"], target="xx")


@pytest.mark.parametrize("lines", [["ab" * 20, "", "a"], ["", " "], ["a b " * 30] * 3])
def test_a_line_in_parts_counts_once_and_a_blank_one_too(lines: list[str]) -> None:
    counted: list[int] = []
    options = {"max_source": 8, "batch_tokens": 9, "on_lines": counted.append}
    translate(ENGINE, VOCAB, lines, target="xx", **options)
    assert sum(counted) == len(lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_tokens": 0}, "`batch_tokens` must be at least 1, but is 0."),
        ({"window_lines": 0}, "`window_lines` must be at least 1, but is 0."),
        ({"max_source": 7}, "`max_source` must be at least 8, but is 7."),
    ],
)
def test_sizes_must_be_in_their_ranges(options: dict[str, int], message: str) -> None:
    with pytest.raises(EvalError) as complaint:
        translator(**options)
    assert str(complaint.value) == message
