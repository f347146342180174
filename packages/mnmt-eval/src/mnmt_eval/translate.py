"""Translating text: batches by length, lines back in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

import numpy as np
import torch

from mnmt_eval.errors import EvalError
from mnmt_eval.protocol import PAD, State, TranslationModel, Vocabulary
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
        vocab: the vocabulary it was trained with, which knows where sources have their target tag.
        lines: source sentences; a blank one has an empty translation.
        target: the target language, such as `de`.
        config: how to search.
        batch_sentences: sentences searched at a time; those of similar length go together.
        on_batch: called with the number of sentences after each batch.

    Returns:
        A translation a line, in the order of the lines; line breaks within one become spaces.

    Raises:
        EvalError: if `batch_sentences` is below 1, or the model has diverged.
        DataError: if the vocabulary has no such target language.
    """
    if batch_sentences < 1:
        raise EvalError(f"`batch_sentences` must be at least 1, but is {batch_sentences}.")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    sources = vocab.encode_sources([lines[number] for number in filled], target=target)
    order = np.argsort(-sources.lengths, kind="stable")
    translations = [""] * len(lines)
    for start in range(0, len(order), batch_sentences):
        batch = order[start : start + batch_sentences]
        src = torch.from_numpy(sources.padded(batch, pad=PAD))
        for place, best in zip(batch.tolist(), search(model, src, config), strict=True):
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
        EvalError, DataError: as `translate`, or if `buffer_sentences` is below 1.
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
