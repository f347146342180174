"""Comparing an exported model with the trained one: weights, token ids and log-probabilities."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mnmt_data.store import EOS, UNK, VOCABULARY, PreparedData, Ragged, checksum
from mnmt_data.stream import batch_by_tokens
from mnmt_model.errors import RunError
from mnmt_model.export.certificate import CTRANSLATE2, OURS, TOLERANCE, TRANSFORMERS, Certificate, PairScores
from mnmt_model.export.engines import (
    Ids,
    Scorer,
    ctranslate2_scorer,
    token_log_probs,
    tokenizer_ids,
    transformers_scorer,
    versions,
)
from mnmt_model.export.hugging_face import WEIGHTS, read_hugging_face
from mnmt_model.export.tokenizer import UNIGRAM, read_sentencepiece, special_tokens
from mnmt_model.transformer.translation_model import TranslationModel

PAIRS = 200
"""Pairs compared, unless told otherwise."""

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

    Weights must read back bit for bit, sentences must get the ids of the prepared data, and targets the same
    log-probabilities. Pairs are read a few at a time; beside the models only a batch's logits are in memory.

    Args:
        model: The trained model, on the CPU.
        folder: Where `export_hugging_face` wrote it.
        data: Whose test sets to take pairs from, their first ones, as many of each set of each task.
        ctranslate2: Folder of the CTranslate2 model, if it is to be compared too.
        pairs: About how many in all.
        tolerance: Largest relative difference of a log-probability.

    Raises:
        RunError: If transformers or CTranslate2 is not installed, or there are no pairs.
    """
    scorers: dict[str, Scorer] = {OURS: _our_scorer(model.eval()), TRANSFORMERS: transformers_scorer(folder)}
    if ctranslate2 is not None:
        scorers[CTRANSLATE2] = ctranslate2_scorer(ctranslate2)
    scores = [
        pair
        for testset, task, rows in _chosen(data, pairs)
        for pair in _compare(scorers, testset, task, rows, *data.shard(testset, task).gather(rows))
    ]
    if not scores:
        raise RunError(f"{data.folder}: has no test set with pairs to compare")
    return Certificate(
        weights_sha256=checksum(folder / WEIGHTS),
        changed_weights=_changed(model.state_dict(), read_hugging_face(folder)[2]),
        vocabulary_sha256=checksum(data.folder / VOCABULARY),
        versions=versions(with_ctranslate2=ctranslate2 is not None),
        engines=tuple(scorers)[1:],
        tolerance=tolerance,
        pairs=tuple(scores),
        tokenizer=_check_tokenizer(folder, data, pairs),
    )


def _check_tokenizer(folder: Path, data: PreparedData, pairs: int) -> TokenizerCheck:
    """What the exported tokenizer makes of both sides of the same pairs."""
    proto, encode, check = (
        read_sentencepiece(data.folder / VOCABULARY),
        tokenizer_ids(folder),
        TokenizerCheck(),
    )
    for testset, task, rows in _chosen(data, pairs):
        sides = zip(data.text(testset, task), data.shard(testset, task).gather(rows), strict=True)
        for lines, ids in sides:
            expected = [ids[place].tolist() for place in range(len(rows))]
            check_sentences(check, proto, encode, [lines[row] for row in rows], expected)
    return check


def _our_scorer(model: TranslationModel) -> Scorer:
    @torch.inference_mode()
    def score(src: Ids, tgt: Ids) -> NDArray[np.float64]:
        targets = torch.from_numpy(tgt)
        return token_log_probs(model.logits(torch.from_numpy(src), targets), targets)

    return score


def _chosen(data: PreparedData, pairs: int) -> Iterator[tuple[str, str, Ids]]:
    """`(test set, task, rows)` in blocks; as many pairs of each test set, or all it has."""
    sets = [(testset, task) for task in data.tasks for testset in data.testsets(task)]
    for testset, task in sets:
        size = min(-(-pairs // len(sets)), len(data.shard(testset, task)))
        for start in range(0, size, _BLOCK):
            yield testset, task, np.arange(start, min(start + _BLOCK, size))


def _compare(
    scorers: Mapping[str, Scorer], testset: str, task: str, rows: Ids, src: Ragged, tgt: Ragged
) -> list[PairScores]:
    """The pairs under every scorer, in order."""
    found: dict[int, PairScores] = {}
    for places in batch_by_tokens(src.lengths, tgt.lengths, batch_tokens=_BATCH_TOKENS):
        padded = src.padded(places), tgt.padded(places)
        log_probs = {engine: score(*padded) for engine, score in scorers.items()}
        for number, place in enumerate(places.tolist()):
            found[place] = PairScores(
                testset=testset,
                task=task,
                row=int(rows[place]),
                tokens=int(tgt.lengths[place]),
                log_probs={engine: float(table[number].sum()) for engine, table in log_probs.items()},
                token_differences=_token_differences(log_probs, number),
            )
    return [found[place] for place in range(len(rows))]


def _token_differences(log_probs: Mapping[str, NDArray[np.float64]], number: int) -> dict[str, float]:
    ours = log_probs[OURS][number]
    return {
        engine: float(np.abs(table[number] - ours).max())
        for engine, table in log_probs.items()
        if engine != OURS
    }


def _changed(expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Names of the weights that differ in any bit."""
    names = sorted(expected.keys() | found.keys())
    return tuple(
        n for n in names if n not in found or n not in expected or not torch.equal(expected[n], found[n])
    )


Kind = Literal["equal", "tie", "literal", "different"]

_TIE = 1e-5
"""Two segmentations whose log-probabilities differ by less than this share of them differ by rounding."""


@dataclass(kw_only=True)
class TokenizerCheck:
    """Sentences tokenised by both, by outcome."""

    equal: int = 0
    """The same ids."""
    tie: int = 0
    """Another segmentation that is as probable, such as "9" + "99" for "99" + "9": rounding decides between
    them, of float32 in SentencePiece, of float64 in tokenizers."""
    literal: int = 0
    """Other ids, of a text that holds something like `</s>`, which transformers takes for the token."""
    different: list[dict[str, Any]] = field(default_factory=list)
    """Other ids for no such reason: the first ten."""
    num_different: int = 0

    def add(self, kind: Kind, text: str, expected: Sequence[int], found: Sequence[int]) -> None:
        """Count a sentence."""
        if kind != "different":
            setattr(self, kind, getattr(self, kind) + 1)
            return
        self.num_different += 1
        if len(self.different) < 10:
            self.different.append({"text": text, "expected": list(expected), "found": list(found)})


def tagged(proto: Any, text: str, ids: Sequence[int]) -> str:
    """`text` with those tags written around it that stand around it in its `ids`."""
    special = set(special_tokens(proto))
    tags = {
        id_: piece.piece for id_, piece in enumerate(proto.pieces) if id_ > UNK and piece.piece in special
    }
    inner = [token for token in ids if token != EOS]
    first = tags.get(inner[0], "") if inner else ""
    last = tags.get(inner[-1], "") if len(inner) > 1 else ""
    return " ".join(part for part in (first, text, last) if part)


def check_sentences(
    check: TokenizerCheck,
    proto: Any,
    encode: Callable[[Sequence[str]], list[list[int]]],
    texts: Sequence[str],
    expected: Sequence[Sequence[int]],
) -> None:
    """Add what `encode` makes of `texts` to `check`, given the ids `expected` of each.

    Args:
        check: The counts so far.
        proto: The SentencePiece model.
        encode: The exported tokenizer.
        texts: As they are in the corpus, without tags.
        expected: As they are in the prepared data, with tags and `</s>`.
    """
    found = encode([tagged(proto, text, ids) for text, ids in zip(texts, expected, strict=True)])
    for text, ids, theirs in zip(texts, expected, found, strict=True):
        check.add(_kind(proto, text, ids, theirs), text, ids, theirs)


def _kind(proto: Any, text: str, expected: Sequence[int], found: Sequence[int]) -> Kind:
    if list(expected) == list(found):
        return "equal"
    if any(token in text for token in special_tokens(proto)) or re.search(r"<0x[0-9A-F]{2}>", text):
        return "literal"
    ours, theirs = (sum(proto.pieces[token].score for token in ids) for ids in (expected, found))
    is_tie = proto.trainer_spec.model_type == UNIGRAM and abs(ours - theirs) <= _TIE * abs(ours)
    return "tie" if is_tie else "different"
