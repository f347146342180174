"""Translating text: batches by length, lines back in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.protocol import EOS, PAD, State, TranslationModel, Vocabulary
from mnmt_eval.search import SearchConfig, search

BATCH_SENTENCES = 64
"""Sentences translated at a time, where nothing else is said."""

BUFFER_SENTENCES = 1024
"""Lines read ahead and sorted by length, where nothing else is said."""

OnBatch = Callable[[int], object]

_LINE_BREAKS = str.maketrans("\n\r", "  ")


def translate(
    model: TranslationModel[State],
    vocab: Vocabulary,
    lines: Sequence[str],
    *,
    target: str,
    config: SearchConfig,
    batch_sentences: int = BATCH_SENTENCES,
    on_batch: OnBatch = lambda sentences: None,
) -> list[str]:
    """Translate lines into one language.

    Args:
        model: what translates.
        vocab: the vocabulary it was trained with.
        lines: source sentences; a blank one has an empty translation.
        target: the target language, such as `de`.
        config: how to search.
        batch_sentences: sentences searched at a time; those of similar length go together.
        on_batch: called with the number of sentences after each batch.

    Returns:
        A translation a line, in the order of the lines; line breaks within one become spaces.

    Raises:
        EvalError: if `batch_sentences` is below 1, or the model has diverged.
    """
    if batch_sentences < 1:
        raise EvalError(f"`batch_sentences` must be at least 1, but is {batch_sentences}.")
    tag = vocab.tag(target)
    filled = [number for number, line in enumerate(lines) if line.strip()]
    pieces = vocab.encode([lines[number] for number in filled])
    order = sorted(range(len(filled)), key=lambda place: len(pieces[place]), reverse=True)
    translations = [""] * len(lines)
    for start in range(0, len(order), batch_sentences):
        batch = order[start : start + batch_sentences]
        src = source_batch([pieces[place] for place in batch], tag=tag)
        for place, best in zip(batch, search(model, src, config), strict=True):
            translations[filled[place]] = vocab.decode(best.tokens).translate(_LINE_BREAKS)
        on_batch(len(batch))
    return translations


def translate_stream(
    model: TranslationModel[State],
    vocab: Vocabulary,
    lines: Iterable[str],
    *,
    target: str,
    config: SearchConfig,
    batch_sentences: int = BATCH_SENTENCES,
    buffer_sentences: int = BUFFER_SENTENCES,
) -> Iterator[str]:
    """Translate lines without end, holding `buffer_sentences` of them at a time.

    Args:
        model: what translates.
        vocab: the vocabulary it was trained with.
        lines: source sentences.
        target: the target language, such as `de`.
        config: how to search.
        batch_sentences: sentences searched at a time.
        buffer_sentences: lines read before the first is translated; they are sorted by length together.

    Raises:
        EvalError: as `translate`, or if `buffer_sentences` is below 1.
    """
    if buffer_sentences < 1:
        raise EvalError(f"`buffer_sentences` must be at least 1, but is {buffer_sentences}.")
    translate_buffer = partial(
        translate, model, vocab, target=target, config=config, batch_sentences=batch_sentences
    )
    translate_buffer([])  # tells mistakes in the arguments before the first line is there
    remaining = iter(lines)
    buffers = iter(lambda: list(islice(remaining, buffer_sentences)), [])
    return chain.from_iterable(map(translate_buffer, buffers))


def source_batch(sentences: Sequence[NDArray[np.int64]], *, tag: int) -> Tensor:
    """Sources `(batch, src_len)`: the tag, the sentence, `EOS`, then padding."""
    width = max(len(ids) for ids in sentences) + 2
    src = np.full((len(sentences), width), PAD, dtype=np.int64)
    src[:, 0] = tag
    for row, ids in zip(src, sentences, strict=True):
        row[1 : len(ids) + 1] = ids
        row[len(ids) + 1] = EOS
    return torch.from_numpy(src)
