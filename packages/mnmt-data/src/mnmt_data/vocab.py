"""The shared SentencePiece vocabulary, with one tag a target language."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import sentencepiece as spm
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.shards import Ragged

PAD, EOS, UNK = 0, 1, 2
Kind = Literal["unigram", "bpe", "word"]


class Vocabulary:
    """Text to token ids and back; ids 0 `<pad>`, 1 `</s>`, 2 `<unk>`, then the target tags `<2xx>`."""

    def __init__(self, processor: spm.SentencePieceProcessor) -> None:
        self._processor = processor
        tags = range(UNK + 1, self.size)
        self._first_piece = next((i for i in tags if not processor.id_to_piece(i).startswith("<2")), self.size)

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Reads a SentencePiece model.

        Raises:
            DataError: if the file is missing or is not such a model.
        """
        if not path.is_file():
            raise DataError(f"{path}: no such vocabulary; `mnmt-data prepare` makes it.")
        try:
            return cls(spm.SentencePieceProcessor(model_file=str(path)))
        except RuntimeError as error:
            raise DataError(f"{path}: not a SentencePiece model; prepare the data again.") from error

    @property
    def size(self) -> int:
        """Number of ids."""
        return int(self._processor.get_piece_size())

    def tag(self, language: str) -> int:
        """Id of the tag `<2language>`.

        Raises:
            DataError: if the vocabulary has no such tag.
        """
        tag = int(self._processor.piece_to_id(tag_of(language)))
        if tag == UNK:
            raise DataError(f"the vocabulary has no tag {tag_of(language)}; prepare a task into {language} first.")
        return tag

    def encode(self, lines: Sequence[str]) -> list[NDArray[np.int64]]:
        """Token ids of each line, without tag and `</s>`."""
        return [np.array(ids, dtype=np.int64) for ids in self._processor.encode(list(lines))]

    def encode_ragged(self, lines: Sequence[str], *, tag: int | None = None) -> Ragged:
        """Token ids of each line as one array: the tag first if one is given, `</s>` last."""
        before = [] if tag is None else [tag]
        rows = [[*before, *ids, EOS] for ids in self._processor.encode(list(lines), num_threads=-1)]
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        values = np.fromiter((token for row in rows for token in row), dtype=self.dtype, count=int(offsets[-1]))
        return Ragged(values, offsets)

    @property
    def dtype(self) -> type[np.uint16] | type[np.int32]:
        """Type that token ids are stored in."""
        return np.uint16 if self.size <= np.iinfo(np.uint16).max else np.int32

    def decode(self, ids: Iterable[int]) -> str:
        """Text of token ids; tags and other special ids leave nothing."""
        return str(self._processor.decode([int(token) for token in ids if token >= self._first_piece]))


def tag_of(language: str) -> str:
    """The tag that asks for `language`: `<2de>` for `de`."""
    return f"<2{language}>"


def train_vocabulary(
    sentences: Iterable[str], path: Path, *, kind: Kind, size: int, languages: Sequence[str]
) -> None:
    """Trains a vocabulary on `sentences` and writes it to `path`.

    Args:
        sentences: text of all languages, in the shares they should have in the vocabulary.
        path: where the model goes.
        kind: `unigram`, `bpe`, or `word`, where every token between spaces is a piece.
        size: number of ids; fewer where the text has no more pieces.
        languages: target languages, each of which gets a tag.

    Raises:
        DataError: if SentencePiece cannot make a vocabulary of this size from this text.
    """
    model = io.BytesIO()
    try:
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type=kind,
            vocab_size=size,
            hard_vocab_limit=False,
            user_defined_symbols=[tag_of(language) for language in languages],
            pad_id=PAD,
            eos_id=EOS,
            unk_id=UNK,
            bos_id=-1,
            character_coverage=0.9995,
            byte_fallback=kind != "word",
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = " ".join(str(error).split()).rpartition("] ")[2]
        raise DataError(f"a {kind} vocabulary of `size` {size} cannot be made of this text: {reason}") from error
    path.write_bytes(model.getvalue())
