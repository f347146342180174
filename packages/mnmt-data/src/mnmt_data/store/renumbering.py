"""SentencePiece models of other programs, with our special ids and tags; they segment text as before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece as spm

from mnmt_data.store.vocabulary import EOS, PAD, UNK, tag_of

_TAG = re.compile(r"<2\S+>")


def is_ours(processor: spm.SentencePieceProcessor) -> bool:
    """Return whether a model has our special ids and at least one tag."""
    special = (processor.pad_id(), processor.eos_id(), processor.unk_id())
    pieces = range(processor.get_piece_size())
    tags = (i for i in pieces if processor.is_control(i) and _TAG.fullmatch(processor.id_to_piece(i)))
    return special == (PAD, EOS, UNK) and next(tags, None) is not None


def renumber(path: Path, languages: Sequence[str]) -> bytes:
    """Return a model with our special ids, then a tag for each language, then its own pieces in their order.

    fairseq, Marian, NLLB and others train with SentencePiece's default ids: 0 `<unk>`, 1 `<s>`, 2 `</s>`, no
    padding. Segmentation depends on pieces, their scores and types, and on no id. `<s>` is left out. A piece
    that is named as a tag becomes the tag, which text can no longer hold.

    Args:
        path: File of the model.
        languages: Target languages.

    Returns:
        A serialised `ModelProto` of SentencePiece.
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined,unused-ignore]

    model = ModelProto()
    model.ParseFromString(path.read_bytes())
    spec, types = model.trainer_spec, ModelProto.SentencePiece
    unk = next(piece.piece for piece in model.pieces if piece.type == types.UNKNOWN)
    tags = [tag_of(language) for language in languages]
    special = [spec.pad_piece, spec.eos_piece, unk, *tags]
    others = [piece for piece in model.pieces if piece.piece not in {*special, spec.bos_piece}]
    others.sort(key=lambda piece: piece.type != types.CONTROL)  # control symbols first, all else as it was
    pieces = [_special(types, name, is_unknown=name == unk) for name in special]
    del model.pieces[:]
    model.pieces.extend([*pieces, *others])
    spec.pad_id, spec.eos_id, spec.unk_id, spec.bos_id = PAD, EOS, UNK, -1
    spec.unk_piece, spec.vocab_size = unk, len(model.pieces)
    spec.control_symbols[:] = [
        piece.piece for piece in model.pieces[UNK + 1 :] if piece.type == types.CONTROL
    ]
    symbols = {piece.piece for piece in model.pieces if piece.type == types.USER_DEFINED}
    spec.user_defined_symbols[:] = [name for name in spec.user_defined_symbols if name in symbols]
    return bytes(model.SerializeToString())


def _special(types: Any, name: str, *, is_unknown: bool) -> Any:
    return types(piece=name, score=0.0, type=types.UNKNOWN if is_unknown else types.CONTROL)
