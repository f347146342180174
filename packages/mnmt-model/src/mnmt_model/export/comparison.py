"""Compare an exported model with the trained one: weights, token ids and log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from mnmt_data.store import VOCABULARY, PreparedData, Ragged, checksum
from mnmt_data.stream import batch_by_tokens
from mnmt_model.errors import RunError
from mnmt_model.export.certificate import (
    CTRANSLATE2,
    OURS,
    TOLERANCE,
    TRANSFORMERS,
    Certificate,
    PairScores,
    location_of,
)
from mnmt_model.export.engines import (
    Ids,
    Scorer,
    Translator,
    ctranslate2_scorer,
    load_transformers,
    token_log_probs,
    tokenizer_ids,
    transformers_scorer,
    transformers_translator,
    versions,
)
from mnmt_model.export.greedy_check import GreedyTranslation, compare_greedy
from mnmt_model.export.hugging_face import WEIGHTS
from mnmt_model.export.layouts import exported_weights
from mnmt_model.export.tokenizer import read_sentencepiece
from mnmt_model.export.tokenizer_check import TokenizerCheck, check_sentences
from mnmt_model.transformer.translation_model import TranslationModel

PAIRS = 200
"""Default number of pairs to compare."""

_TRANSLATIONS = 16
"""Approximate number of sources to translate."""

_BATCH_TOKENS = 1024
_BLOCK = 256


def certify(
    model: TranslationModel,
    folder: Path,
    data: PreparedData,
    *,
    ctranslate2: Path | None = None,
    pairs: int = PAIRS,
    tolerance: float = TOLERANCE,
) -> Certificate:
    """Compare an exported model with the one it was exported from.

    Weights must be equal bit for bit, sentences must get the ids of the prepared data, and targets the same
    log-probabilities. Greedy translations of transformers must be those that the trained model prefers.
    Memory holds the models and the logits of one batch.

    Args:
        model: The trained model, on the CPU.
        folder: Folder that `export_hugging_face` wrote.
        data: Prepared data; the first pairs of each test set are compared, equally many of each.
        ctranslate2: Folder of the CTranslate2 model, to compare that too.
        pairs: Approximate number of pairs in all.
        tolerance: Largest accepted relative difference of a log-probability.

    Raises:
        RunError: If transformers or CTranslate2 is not installed, or there are no pairs.
    """
    theirs = load_transformers(folder)
    scorers: dict[str, Scorer] = {OURS: _our_scorer(model.eval()), TRANSFORMERS: transformers_scorer(theirs)}
    if ctranslate2 is not None:
        scorers[CTRANSLATE2] = ctranslate2_scorer(ctranslate2)
    scores = [
        pair
        for testset, task, rows in _rows(data, pairs)
        for pair in _compare(scorers, testset, task, rows, *data.shard(testset, task).gather(rows))
    ]
    if not scores:
        raise RunError(f"{data.folder}: has no test set with pairs to compare")
    return Certificate(
        weights_sha256=checksum(folder / WEIGHTS),
        changed_weights=_changed_weights(model, folder),
        vocabulary_sha256=checksum(data.folder / VOCABULARY),
        versions=versions(with_ctranslate2=ctranslate2 is not None),
        engines=tuple(scorers)[1:],
        tolerance=tolerance,
        pairs=tuple(scores),
        translations=tuple(_greedy_translations(model, transformers_translator(theirs), data, pairs)),
        tokenizer=_check_tokenizer(folder, data, pairs),
    )


def _check_tokenizer(folder: Path, data: PreparedData, pairs: int) -> TokenizerCheck:
    """Compare the exported tokenizer's ids of both sides of the same pairs with the ids of the data."""
    proto, encode = read_sentencepiece(data.folder / VOCABULARY), tokenizer_ids(folder)
    check = TokenizerCheck()
    for testset, task, rows in _rows(data, pairs):
        sides = zip(data.text(testset, task), data.shard(testset, task).gather(rows), strict=True)
        for lines, ids in sides:
            expected = [ids[place].tolist() for place in range(len(rows))]
            check_sentences(check, proto, encode, [lines[row] for row in rows], expected)
    return check


def _greedy_translations(
    model: TranslationModel, translate: Translator, data: PreparedData, pairs: int
) -> Iterator[GreedyTranslation]:
    for testset, task, rows in _rows(data, min(pairs, _TRANSLATIONS)):
        src, _ = data.shard(testset, task).gather(rows)
        locations = [location_of(testset, task, row) for row in rows.tolist()]
        yield from compare_greedy(model, translate, src.padded(np.arange(len(rows))), locations)


def _our_scorer(model: TranslationModel) -> Scorer:
    @torch.inference_mode()
    def score(src: Ids, tgt: Ids) -> NDArray[np.float64]:
        targets = torch.from_numpy(tgt)
        return token_log_probs(model.logits(torch.from_numpy(src), targets), targets)

    return score


def _rows(data: PreparedData, pairs: int) -> Iterator[tuple[str, str, Ids]]:
    """Yield `(test set, task, rows)` in blocks, with equally many rows of each test set, or all."""
    sets = [(testset, task) for task in data.tasks for testset in data.testsets(task)]
    for testset, task in sets:
        size = min(-(-pairs // len(sets)), len(data.shard(testset, task)))
        for start in range(0, size, _BLOCK):
            yield testset, task, np.arange(start, min(start + _BLOCK, size))


def _compare(
    scorers: Mapping[str, Scorer], testset: str, task: str, rows: Ids, src: Ragged, tgt: Ragged
) -> list[PairScores]:
    """Return the scores of the pairs under every scorer, in order."""
    scores: dict[int, PairScores] = {}
    for places in batch_by_tokens(src.lengths, tgt.lengths, batch_tokens=_BATCH_TOKENS):
        padded = src.padded(places), tgt.padded(places)
        log_probs = {engine: score(*padded) for engine, score in scorers.items()}
        for number, place in enumerate(places.tolist()):
            scores[place] = PairScores(
                testset=testset,
                task=task,
                row=int(rows[place]),
                tokens=int(tgt.lengths[place]),
                log_probs={engine: float(table[number].sum()) for engine, table in log_probs.items()},
                token_differences=_token_differences(log_probs, number),
            )
    return [scores[place] for place in range(len(rows))]


def _token_differences(log_probs: Mapping[str, NDArray[np.float64]], number: int) -> dict[str, float]:
    ours = log_probs[OURS][number]
    return {
        engine: float(np.abs(table[number] - ours).max())
        for engine, table in log_probs.items()
        if engine != OURS
    }


def _changed_weights(model: TranslationModel, folder: Path) -> tuple[str, ...]:
    """Return transformers' names of the weights that differ in any bit."""
    expected = exported_weights(model.config, model.state_dict())
    exported = load_file(folder / WEIGHTS)
    same = {name for name in expected.keys() & exported.keys() if torch.equal(expected[name], exported[name])}
    return tuple(sorted((expected.keys() | exported.keys()) - same))
