"""Folders of small random models of transformers with their tokenizers, as their users have them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from hugging_face_models import random_model

WORDS = ("the", "old", "house", "tree", "stands", "green", "and", "river", "small", "long", "under", "blue")
LINES = [" ".join(WORDS[(i * k) % 12] for k in range(2, 3 + i % 9)) + "." for i in range(1, 200)]
POSITIONS = {"max_position_embeddings": 64}
NORMALIZED = {"normalize_before": True, "normalize_embedding": True, **POSITIONS}
"""What CTranslate2's converter reads of mBART's configuration."""


def sentencepiece_model(folder: Path, **options: Any) -> Path:
    """Train a small SentencePiece model."""
    path = folder / "trained.model"
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES),
            model_writer=file,
            vocab_size=48,
            hard_vocab_limit=False,
            minloglevel=2,
            **options,
        )
    return path


def pieces_of(path: Path) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())][3:]


def marian(folder: Path) -> Any:
    from transformers import MarianTokenizer

    path = sentencepiece_model(folder)
    tokens = ["</s>", "<unk>", *pieces_of(path), ">>deu<<", ">>fra<<", "<pad>"]
    vocab = folder / "tokens.json"
    vocab.write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = MarianTokenizer(str(path), str(path), str(vocab))
    model = random_model("marian", vocab_size=len(tokens), **POSITIONS)
    with torch.no_grad():  # as in models that are converted from Marian
        model.model.shared.weight[-1] = 0.0
        model.final_logits_bias[0, -1] = -1e4
    return tokenizer, model


def m2m_100(folder: Path) -> Any:
    from transformers import M2M100Tokenizer

    path, vocab = sentencepiece_model(folder), folder / "tokens.json"
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(path)]
    vocab.write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    tokenizer = M2M100Tokenizer(str(vocab), str(path))
    return tokenizer, random_model("m2m_100", vocab_size=len(tokens) + 108, **POSITIONS)


def nllb(folder: Path) -> Any:
    from transformers import NllbTokenizerFast

    tokenizer = NllbTokenizerFast(str(sentencepiece_model(folder)))
    return tokenizer, random_model("m2m_100", vocab_size=len(tokenizer), **POSITIONS)


def mbart_50(folder: Path) -> Any:
    from transformers import MBart50TokenizerFast

    tokenizer = MBart50TokenizerFast(str(sentencepiece_model(folder)), bos_token="<s>")
    options = {"tokenizer_class": "MBart50Tokenizer", **NORMALIZED}
    return tokenizer, random_model("mbart", vocab_size=len(tokenizer), **options)


def mbart_25(folder: Path) -> Any:
    from transformers import MBartTokenizerFast

    tokenizer = MBartTokenizerFast(str(sentencepiece_model(folder)))
    return tokenizer, random_model("mbart", vocab_size=len(tokenizer), **NORMALIZED)


def t5(folder: Path) -> Any:
    from transformers import T5Tokenizer

    path = sentencepiece_model(folder, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    tokenizer = T5Tokenizer(str(path), extra_ids=4, legacy=False)
    prefixes = {"translation_en_to_de": {"prefix": "the house to: "}}
    model = random_model("t5", vocab_size=len(tokenizer), task_specific_params=prefixes)
    with torch.no_grad():  # else CTranslate2, which may not forbid padding after the softmax, would expect it
        model.lm_head.weight[0] = 0.0
    return tokenizer, model


FOLDERS: dict[str, Callable[[Path], Any]] = {
    "marian": marian,
    "m2m_100": m2m_100,
    "nllb": nllb,
    "mbart_50": mbart_50,
    "mbart_25": mbart_25,
    "t5": t5,
}


def write_folder(name: str, folder: Path) -> Path:
    """Write a model and its tokenizer to `folder/NAME`."""
    tokenizer, model = FOLDERS[name](folder)
    tokenizer.save_pretrained(folder / name)
    # transformers leaves out tensors that share memory, and would draw them anew.
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    model.save_pretrained(folder / name, state_dict=weights)
    return folder / name
