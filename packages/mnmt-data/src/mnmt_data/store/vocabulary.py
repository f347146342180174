"""The shared SentencePiece vocabulary, with one tag for each target language."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Literal

import numpy as np
import sentencepiece as spm
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file
from mnmt_data.store.direction import TargetTag, insert_tag
from mnmt_data.store.ragged import Ragged, offsets_of

PAD, EOS, UNK = 0, 1, 2

MOST_IDS = 10**7
"""Most ids of a vocabulary: ten times those of the largest that was published."""

BLOCK_LINES = 50_000
"""Lines encoded at a time, so that Python's lists of token ids stay small beside the arrays."""

_SAMPLING = Lock()

Kind = Literal["unigram", "bpe", "word"]


class Vocabulary:
    """Text to token ids and back; ids 0 `<pad>`, 1 `</s>`, 2 `<unk>`, then the target tags `<2xx>`.

    Args:
        processor: The SentencePiece model.
        target_tag: Place of the target tag in sources.
    """

    def __init__(self, processor: spm.SentencePieceProcessor, *, target_tag: TargetTag = "prepended") -> None:
        self._processor = processor
        self.target_tag: TargetTag = target_tag

    @classmethod
    def load(cls, path: Path, *, target_tag: TargetTag = "prepended") -> Vocabulary:
        """Read a SentencePiece model.

        Args:
            path: Its file.
            target_tag: Place of the target tag in sources, which prepared.json has and the file has not.

        Raises:
            DataError: If the file is missing, is not such a model, or has other special ids.
        """
        processor = read_sentencepiece(path)
        special = (processor.pad_id(), processor.eos_id(), processor.unk_id())
        if special != (PAD, EOS, UNK):
            remedy = "name it as `path` in [data.vocab], and `mnmt-data prepare` gives it these"
            raise DataError(f"{path}: <pad>, </s>, <unk> must be 0, 1, 2, but are {special}; {remedy}.")
        return cls(processor, target_tag=target_tag)

    @property
    def size(self) -> int:
        """Number of ids."""
        return int(self._processor.get_piece_size())

    @property
    def dtype(self) -> type[np.uint16] | type[np.int32]:
        """Type that token ids are stored in."""
        return np.uint16 if self.size <= np.iinfo(np.uint16).max + 1 else np.int32

    @property
    def byte_tokens(self) -> NDArray[np.bool_]:
        """(size,) bool: whether the id encodes a byte of a character without a piece."""
        return np.array([self._processor.is_byte(token) for token in range(self.size)])

    @property
    def token_bytes(self) -> NDArray[np.int64]:
        """(size,) UTF-8 bytes that each id puts into a text, with a word's space; 0 for special ids."""
        processor = self._processor
        pieces = (processor.id_to_piece(i) for i in range(self.size))
        lengths = [len(piece.replace("\u2581", " ").encode()) for piece in pieces]
        special = [processor.is_control(i) or processor.is_unknown(i) for i in range(self.size)]
        return np.where(special, 0, np.where(self.byte_tokens, 1, lengths)).astype(np.int64)

    def tag(self, language: str) -> int:
        """Return the id of the tag `<2language>`.

        Raises:
            DataError: If the vocabulary has no such tag.
        """
        tag = int(self._processor.piece_to_id(tag_of(language)))
        if not self._processor.is_control(tag):
            raise DataError(f"the vocabulary has no tag {tag_of(language)}; prepare a task into {language}.")
        return tag

    def encode(self, lines: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return the token ids of each line, without tag and `</s>`."""
        return [np.array(ids, dtype=np.int64) for ids in self._processor.encode(list(lines))]

    def encode_sources(self, lines: Sequence[str], *, target: str) -> Ragged:
        """Encode sources as a model reads them: token ids with the target tag in its place, and `</s>`.

        Args:
            lines: Text.
            target: The language to translate into, such as `de`.

        Raises:
            DataError: If the vocabulary has no tag of the language, even where sources have none.
        """
        tag = self.tag(target)
        return insert_tag(self.encode_ragged(lines), tag, self.target_tag)

    def encode_ragged(self, lines: Sequence[str], *, num_threads: int = -1) -> Ragged:
        """Encode lines as shards hold them, and as a model reads targets: token ids and `</s>`.

        Args:
            lines: Text.
            num_threads: Threads to encode with; -1: one for each processor.
        """
        blocks = []
        for start in range(0, max(len(lines), 1), BLOCK_LINES):
            block = list(lines[start : start + BLOCK_LINES])
            rows = self._processor.encode(block, num_threads=num_threads)
            offsets = offsets_of([len(row) + 1 for row in rows])
            tokens = chain.from_iterable(chain(row, (EOS,)) for row in rows)
            blocks.append(Ragged(np.fromiter(tokens, self.dtype, count=int(offsets[-1])), offsets))
        return blocks[0] if len(blocks) == 1 else Ragged.concatenate(blocks)

    def sample(self, text: str, *, seed: int, rate: float) -> list[int]:
        """Return the token ids of a segmentation at random, without tag and `</s>`.

        Args:
            text: A line.
            seed: Seed of the choice, of which 32 bits count: the same text and seed give the same ids.
            rate: Of BPE, the probability that a merge is left out (Provilkov et al. 2020, BPE-dropout); of a
                unigram vocabulary, the exponent of a segmentation's probability (Kudo 2018).
        """
        with _SAMPLING:  # SentencePiece has one generator for all threads
            spm.set_random_generator_seed(int(seed) & 0xFFFFFFFF)
            ids: list[int] = self._processor.encode(text, enable_sampling=True, alpha=rate, nbest_size=-1)
        return ids

    def recode(self, row: NDArray[np.integer], encode: Callable[[str], Sequence[int]]) -> NDArray[np.int64]:
        """Return a row with its text encoded by `encode`, and tag and `</s>` where they were.

        A row with an unknown token, whose text is lost, is returned as it is.
        """
        ids: NDArray[np.int64] = row.astype(np.int64)
        text = np.flatnonzero(~self._is_control[ids])
        if not text.size or (ids == UNK).any():
            return ids
        start, stop = text[0], text[-1] + 1
        return np.concatenate(
            [ids[:start], np.asarray(encode(self.decode(ids[start:stop])), dtype=np.int64), ids[stop:]]
        )

    @cached_property
    def _is_control(self) -> NDArray[np.bool_]:
        """(size,) whether an id is padding, `</s>` or a tag."""
        return np.array([self._processor.is_control(token) for token in range(self.size)])

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; padding, `</s>` and tags leave nothing, `<unk>` leaves ⁇."""
        return str(self._processor.decode([int(token) for token in ids]))


def read_sentencepiece(path: Path) -> spm.SentencePieceProcessor:
    """Read a SentencePiece model, whatever its ids.

    Raises:
        DataError: If the file is missing, or is not such a model.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such vocabulary; `mnmt-data prepare` makes it.")
    try:
        return spm.SentencePieceProcessor(model_file=str(path))
    except RuntimeError as error:
        raise DataError(
            f"{path}: not a SentencePiece model; prepare the data again, or name a .model of spm_train."
        ) from error


def tag_of(language: str) -> str:
    """Return the tag that asks for `language`: `<2de>` for `de`."""
    return f"<2{language}>"


def train_vocabulary(
    sentences: Iterable[str],
    path: Path,
    *,
    kind: Kind,
    size: int,
    languages: Sequence[str],
    byte_fallback: bool = True,
    character_coverage: float = 0.9995,
) -> None:
    """Train a vocabulary on `sentences`, and write it to `path`.

    Text is taken as it is, without SentencePiece's own normalisation, which would turn a Chinese comma into
    an ASCII one and so spoil the punctuation of every translation. Tags are control symbols: no text can
    hold one.

    Args:
        sentences: Text of all languages, in the shares they should have in the vocabulary.
        path: File of the model.
        kind: `unigram` or `bpe`; or `word`, where every token between spaces is a piece and all else unknown.
        size: Number of ids; fewer where the text has no more pieces.
        languages: Target languages, each of which gets a tag.
        byte_fallback: Whether a character that has no piece is spelled in bytes; never for `word`.
        character_coverage: Share of the text's characters that must be pieces; all for `word`.

    Raises:
        ValueError: If SentencePiece cannot make a vocabulary of this size from this text.
    """
    words = kind == "word"
    model = io.BytesIO()
    try:
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type=kind,
            vocab_size=size,
            hard_vocab_limit=False,
            control_symbols=[tag_of(language) for language in languages],
            pad_id=PAD,
            eos_id=EOS,
            unk_id=UNK,
            bos_id=-1,
            normalization_rule_name="identity",
            character_coverage=1.0 if words else character_coverage,
            byte_fallback=byte_fallback and not words,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = " ".join(str(error).split()).rpartition("] ")[2]
        if least := re.search(r"smaller than required_chars\. \d+ vs (\d+)", reason):
            reason = f"it must be at least {least.group(1)}, the number of its characters and special tokens."
        raise ValueError(f"`size` {size} does not suit a {kind} vocabulary of this text: {reason}") from error
    with atomic_file(path) as file:
        file.write(model.getvalue())
