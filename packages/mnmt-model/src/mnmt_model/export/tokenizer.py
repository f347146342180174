"""Convert a SentencePiece vocabulary to a tokenizer.json with the same ids."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mnmt_data.store import UNK, Vocabulary
from mnmt_model.errors import RunError
from mnmt_model.export.engines import export_extra

SPACE = "▁"
"""SentencePiece's character for a space."""

UNIGRAM, BPE, WORD = 1, 2, 3
"""`TrainerSpec.ModelType` of SentencePiece."""

PAD_TOKEN, EOS_TOKEN, UNK_TOKEN = "<pad>", "</s>", "<unk>"

_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6

Json = dict[str, Any]


def read_sentencepiece(path: Path) -> Any:
    """Return the `ModelProto` of a SentencePiece model.

    Raises:
        DataError: If the file is missing, not a SentencePiece model, or has other special ids than ours.
        RunError: If tokenizer.json cannot express the model.
    """
    Vocabulary.load(path)
    with export_extra():
        from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined,unused-ignore]
    proto = ModelProto()
    proto.ParseFromString(path.read_bytes())
    trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
    for field, value, exported in (
        ("model_type", trainer.model_type, (UNIGRAM, BPE, WORD)),
        ("treat_whitespace_as_suffix", trainer.treat_whitespace_as_suffix, (False,)),
        ("escape_whitespaces", normalizer.escape_whitespaces, (True,)),
        ("add_dummy_prefix", normalizer.add_dummy_prefix, (True,)),
        ("remove_extra_whitespaces", normalizer.remove_extra_whitespaces, (True,)),
    ):
        if value not in exported:
            raise RunError(
                f"{path}: its `{field}` is {value}, but only vocabularies with {_either(exported)} "
                "can be exported"
            )
    return proto


def special_tokens(proto: Any) -> list[str]:
    """Return the special tokens, by id: padding, end and unknown, then the tags."""
    return [piece.piece for piece in proto.pieces if piece.type in (_CONTROL, _UNKNOWN)]


def tokens(proto: Any) -> list[str]:
    """Return the exported tokenizer's token of every id.

    A piece "▁word" of a `word` vocabulary becomes "▁word▁". A Unigram model of such text matches only whole
    words, and gives one <unk> for unknown words in a row, as SentencePiece does.
    """
    if proto.trainer_spec.model_type != WORD:
        return [piece.piece for piece in proto.pieces]
    return [piece.piece + SPACE if piece.type == _NORMAL else piece.piece for piece in proto.pieces]


def tokenizer(proto: Any) -> Json:
    """Return the content of tokenizer.json, which appends `</s>` and matches tags anywhere in the text.

    Args:
        proto: The result of `read_sentencepiece`.
    """
    ids = {piece.piece: number for number, piece in enumerate(proto.pieces)}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(ids[token], token) for token in special_tokens(proto)],
        "normalizer": _normalizer(proto),
        "pre_tokenizer": None,
        "post_processor": _end(ids[EOS_TOKEN]),
        "decoder": _decoder(proto),
        "model": _bpe(proto) if proto.trainer_spec.model_type == BPE else _unigram(proto),
    }


def tokenizer_config(proto: Any) -> Json:
    """Return the content of tokenizer_config.json."""
    named = (PAD_TOKEN, EOS_TOKEN, UNK_TOKEN)
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": PAD_TOKEN,
        "eos_token": EOS_TOKEN,
        "unk_token": UNK_TOKEN,
        "additional_special_tokens": [token for token in special_tokens(proto) if token not in named],
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": 2**31 - 1,
    }


def _added(number: int, token: str) -> Json:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": token, **flags}


def _normalizer(proto: Any) -> Json:
    """Return SentencePiece's normaliser: map characters, trim and collapse spaces, and prepend one."""
    charsmap = proto.normalizer_spec.precompiled_charsmap
    steps: list[Json] = []
    if charsmap:
        encoded = base64.b64encode(charsmap).decode("ascii")
        steps.append({"type": "Precompiled", "precompiled_charsmap": encoded})
    steps += [
        _replace({"Regex": f"^ +|[ {SPACE}]+$"}, ""),
        _replace({"Regex": " +"}, SPACE),
        {"type": "Prepend", "prepend": SPACE},
    ]
    if proto.trainer_spec.model_type == WORD:
        # "▁a▁b" becomes "▁a▁▁b▁".
        steps.append(_replace({"Regex": f"(?<=.)(?={SPACE})|(?<=.)$"}, SPACE))
    return {"type": "Sequence", "normalizers": steps}


def _replace(pattern: Json, content: str) -> Json:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _decoder(proto: Any) -> Json:
    if proto.trainer_spec.model_type == WORD:
        fused: list[Json] = [
            {"type": "Fuse"},
            _replace({"String": SPACE * 2}, " "),
            _replace({"String": SPACE}, ""),
        ]
        return {"type": "Sequence", "decoders": fused}
    steps = [_replace({"String": SPACE}, " "), {"type": "ByteFallback"}, {"type": "Fuse"}]
    return {
        "type": "Sequence",
        "decoders": [*steps, {"type": "Strip", "content": " ", "start": 1, "stop": 0}],
    }


def _end(eos: int) -> Json:
    end = {"SpecialToken": {"id": EOS_TOKEN, "type_id": 0}}
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in ("A", "B"))
    return {
        "type": "TemplateProcessing",
        "single": [first, end],
        "pair": [first, end, second, end],
        "special_tokens": {EOS_TOKEN: {"id": EOS_TOKEN, "ids": [eos], "tokens": [EOS_TOKEN]}},
    }


def _unigram(proto: Any) -> Json:
    """Return a Unigram model; a `word` vocabulary has only one segmentation, so all scores are 0."""
    scores = [0.0 if proto.trainer_spec.model_type == WORD else piece.score for piece in proto.pieces]
    return {
        "type": "Unigram",
        "unk_id": UNK,
        "vocab": [[token, score] for token, score in zip(tokens(proto), scores, strict=True)],
        "byte_fallback": _has_bytes(proto),
    }


def _bpe(proto: Any) -> Json:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": UNK_TOKEN,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": _has_bytes(proto),
        "ignore_merges": False,
        "vocab": {token: number for number, token in enumerate(tokens(proto))},
        "merges": _merges(proto),
    }


def _merges(proto: Any) -> list[list[str]]:
    """Return the pairs of pieces that merge into a piece, in SentencePiece's order."""
    scores = {piece.piece: piece.score for piece in proto.pieces if piece.type == _NORMAL}
    pairs = [
        (piece[:cut], piece[cut:])
        for piece in sorted(scores, key=lambda piece: -scores[piece])
        for cut in range(1, len(piece))
    ]
    return [[left, right] for left, right in pairs if left in scores and right in scores]


def _has_bytes(proto: Any) -> bool:
    return any(piece.type == _BYTE for piece in proto.pieces)


def _either(values: Sequence[object]) -> str:
    return " or ".join(str(value) for value in values)
